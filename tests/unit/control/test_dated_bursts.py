"""What comes at once after a cut link is judged by when the machine wrote it, not by when it arrived."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from stationmaster.control.states.executing.log_watch import ReadLog, read_log, since_of, written_at
from stationmaster.model import Job, State
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.settings import MonitoringSettings, StallSettings
from tests.support.jobs.spine_values import job, spec
from trackside.report.status import parse_since
from trackside.report.thinning import thin_redraws

STEP_SECONDS, TOTAL = 0.25, 4000
APART = 30  # seconds between two marks of time in an answer
SHORT = {"min_window": "5s", "near_end_eta": "1s", "resume_span": "1s", "resume_window": "3s", "collapse_hold": "3s"}
MONITORING = MonitoringSettings(
    stall_detection=StallSettings(thresholds={**SHORT, "trend_windows": 1, "sustain_windows": 1})
)


def bar(step: int) -> bytes:
    return b"\rjob: %3d%%|#    | %d/%d [00:01<00:09, 4.00it/s, lr: 1.0e-04 loss: 3.1e-01]" % (
        step * 100 // TOTAL,
        step,
        TOTAL,
    )


def piece(since: float, until: float) -> LogPiece:
    """What the machine answers at `until` about all that it wrote after `since`, as trackside does it."""
    start, end = (sum(len(bar(step)) for step in range(int(at / STEP_SECONDS))) for at in (since, until))
    raw = b"".join(bar(step) for step in range(int(since / STEP_SECONDS), int(until / STEP_SECONDS)))
    walls = [wall for wall in range(int(until), 0, -APART) if wall > since][::-1]
    places = [
        sum(len(bar(step)) for step in range(int(since / STEP_SECONDS), int(wall / STEP_SECONDS))) for wall in walls
    ]
    data, places = thin_redraws(raw, places)
    times = tuple((place, float(wall)) for place, wall in zip(places, walls, strict=True))
    return LogPiece(stream="0.1", inode=1, start=start, end=end, data=data, times=times)


def look(watched: Job, since: float, until: float) -> tuple[Job, ReadLog]:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=0.0)
    status = Status(
        wall=until, monotonic=until, boot_id="b", started=True, steps=(train,), log=(piece(since, until),),
        training_alive=True,
    )  # fmt: skip
    seen = read_log(watched, status, framework="ai-toolkit", monitoring=MONITORING, now=until + 1000.0)
    return replace(watched, watching=seen.watching, progress=seen.progress), seen


@pytest.mark.parametrize("cut_seconds", [10, 25, 200])
def test_a_cut_link_leaves_the_pace_as_it_was(cut_seconds: int) -> None:
    training = job(state=State.EXECUTING, spec=replace(spec(), parameters={"steps": TOTAL}))
    looks = [*range(20), *range(20 + cut_seconds, 80 + cut_seconds)]
    for since, until in pairwise(looks):
        training, seen = look(training, since, until)
        assert seen.event is None, f"at {until} s: {seen.event.analysis.reason}"
        for reading in seen.readings:
            assert reading.step * STEP_SECONDS == pytest.approx(reading.at - 1000.0, abs=APART)
    assert training.progress.step == looks[-1] / STEP_SECONDS - 1


def test_a_watch_with_a_short_window_asks_for_a_finely_dated_log() -> None:
    """Else a pause that was announced just before the cut would swallow half a minute of training."""
    assert since_of(job(), MONITORING).grain_seconds == 5 / 20
    assert since_of(job(), MonitoringSettings()).grain_seconds is None
    long = MonitoringSettings(stall_detection=StallSettings(thresholds={"min_window": "1h"}))
    assert since_of(job(), long).grain_seconds == APART
    asked = json.dumps(since_of(job(), MONITORING).to_json())
    assert parse_since(asked).grain_seconds == 5 / 20
    assert parse_since("{}").grain_seconds == APART


def test_the_end_of_a_part_is_dated_by_its_last_mark_and_not_by_now() -> None:
    """The rest comes with the next answer; time must not go back for it."""
    part = LogPiece(stream="0.1", inode=1, start=0, end=9, data=b"x", times=((1, 40.0),))
    status = Status(wall=500.0, monotonic=1.0, boot_id="b", started=True, log=(part,), more=True)
    assert written_at(part, status) == 40.0
    assert written_at(part, replace(status, more=False)) == 500.0
