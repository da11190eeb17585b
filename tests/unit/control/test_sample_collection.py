"""Which samples of a running training are brought home, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.results.sample_collection import LARGEST_BYTES, MOST_FILES, next_samples
from stationmaster.event_sentences import sentence
from stationmaster.model import Collection, Job, OutputFile, State
from stationmaster.remote.status import Status, Supervisor
from tests.support.jobs.spine_values import job
from tests.support.policies import changed

SAMPLE = OutputFile(path="output/samples/a.png", kind="sample", size=10, mtime=900.0)


def running(**known: Any) -> Job:
    return job(state=State.EXECUTING, state_since=0.0, collection=Collection(**known))


def chosen(before: Job, *files: OutputFile, now: float = 700.0, every: float = 60.0) -> list[str]:
    supervisor = Supervisor(alive=True, pid=1)
    status = Status(wall=1000.0, monotonic=0.0, boot_id="b", started=True, supervisor=supervisor, outputs=files)
    found = next_samples(before, status, policy=changed(artifacts={"samples_every": every}), now=now)
    return [] if found is None else [file.path for file in found.files]


def test_new_samples_are_wanted_oldest_first_when_their_time_has_come() -> None:
    newer = replace(SAMPLE, path="output/samples/0.png", mtime=950.0)
    assert chosen(running(), newer, SAMPLE) == [SAMPLE.path, newer.path]
    assert chosen(running(newest_sample=(900.0, SAMPLE.path)), newer, SAMPLE) == [newer.path]
    assert chosen(running(newest_sample=(950.0, newer.path)), newer, SAMPLE) == []
    assert chosen(running(samples_at=650.0), SAMPLE) == []
    assert chosen(running(samples_at=640.0), SAMPLE) == [SAMPLE.path]
    assert chosen(running(), SAMPLE, every=0.0) == []


@pytest.mark.parametrize(
    "file",
    [
        replace(SAMPLE, mtime=999.0),  # written a moment ago
        replace(SAMPLE, size=0),
        replace(SAMPLE, size=LARGEST_BYTES + 1),
        replace(SAMPLE, kind="checkpoint"),
        replace(SAMPLE, kind="state"),
        replace(SAMPLE, kind="log"),
    ],
)
def test_what_is_no_sample_or_still_written_is_left_for_the_end(file: OutputFile) -> None:
    assert chosen(running(), file) == []


def test_metrics_files_come_too_and_again_when_they_have_grown() -> None:
    table = replace(SAMPLE, path="output/metrics.csv", kind="metrics")
    assert chosen(running(), table) == [table.path]
    known = running(newest_sample=(900.0, table.path))
    assert chosen(known, table) == []
    assert chosen(known, replace(table, mtime=960.0, size=20)) == [table.path]


def test_no_machine_can_fill_the_disk_with_samples() -> None:
    many = [replace(SAMPLE, path=f"output/samples/{number:03}.png") for number in range(100)]
    assert len(chosen(running(), *many)) == MOST_FILES
    assert chosen(running(sample_bytes=2**30), SAMPLE) == []


def test_the_samples_are_told_in_one_sentence() -> None:
    assert sentence("samples_collected", {"count": 4, "step": 200}) == "Fetched 4 samples, up to step 200."
    assert sentence("samples_collected", {"count": 1, "step": None}) == "Fetched 1 sample."
