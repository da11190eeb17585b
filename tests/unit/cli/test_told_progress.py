"""What `show`, `jobs` and `watch` tell of a training: stage and phase, speed and ETA, and no line twice in a pipe."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from stationmaster.cli.job_lines import view_lines
from stationmaster.cli.job_table import COLUMNS, job_row
from stationmaster.cli.live import ChangeLines
from stationmaster.cli.table import table_lines
from stationmaster.lifecycle import progress_shown, shown, stage
from stationmaster.model import Outcome, Progress, Reason, State, Transfer, Watching
from stationmaster.money import ZERO
from stationmaster.station.jobs import JobView
from tests.support.jobs.spine_values import job

NOW = 10_000.0
TRAINING = Progress(
    step=40, total_steps=400, loss=0.25, steps_per_second=0.5, eta_seconds=720.0, phase="training", phase_since=9_000.0
)
SAMPLING = replace(TRAINING, phase="sampling", phase_since=NOW - 120)


def view(progress: Progress = TRAINING, **fields: Any) -> JobView:
    values = {"state": State.EXECUTING, "attempt": 1, "watching": Watching(trained=True), **fields}
    found = job(progress=progress, **values)
    return JobView(
        job=replace(found, progress=progress_shown(found)), now=NOW, shown=shown(found, now=NOW), stage=stage(found),
        cost=ZERO, rentals=(), costs=(), checkpoints=(), alerts=(), access=None,
    )  # fmt: skip


def line_of(found: JobView, word: str) -> str:
    (line,) = [line for line in view_lines(found) if line.startswith(f"  {word} ")]
    return line.removeprefix(f"  {word}").strip()


def test_show_tells_the_stage_and_what_the_training_does_instead_of_steps() -> None:
    assert line_of(view(), "stage") == "training (5 of 10)"
    assert line_of(view(SAMPLING), "stage") == "training: sampling for 2m (5 of 10)"
    loading = Progress(phase="loading", phase_since=NOW - 45, active_step="train")
    assert line_of(view(loading), "stage") == "training: loading for 45s (5 of 10)"
    installing = view(Progress(active_step="install"), watching=Watching())
    assert line_of(installing, "stage") == "dataset synced: step install (4 of 10)"


def test_show_tells_speed_and_eta_only_of_a_training_that_runs() -> None:
    assert line_of(view(), "progress") == "40/400 (10%), loss 0.250, 0.50 steps/s, ETA 12m"
    ended = view(SAMPLING, state=State.ENDED, outcome=Outcome.FAILED, reason=Reason.STEP_FAILED)
    assert line_of(ended, "progress") == "40/400 (10%), loss 0.250"
    assert "completed" not in line_of(ended, "stage")


def test_a_training_that_makes_no_step_has_no_speed_and_no_eta() -> None:
    silent = replace(TRAINING, at=NOW - 200)
    assert line_of(view(silent), "stage") == "training: no step for 3m20s (5 of 10)"
    assert line_of(view(silent), "progress") == "40/400 (10%), loss 0.250"
    assert row(view(silent))[2:] == ["EXECUTING", "training: no step for 3m20s", "40/400 (10%)", "0.250"]
    lines = printed(view(), view(silent), view(silent), view())
    assert [line.split()[1:4] for line in lines[1:2]] == [["no", "new", "step,"]]
    assert len(lines) == 2, "neither each look at the silence nor the same progress again is a line"


def test_a_slow_training_may_be_silent_for_longer() -> None:
    slow = replace(TRAINING, steps_per_second=0.05, at=NOW - 200)
    assert line_of(view(slow), "stage") == "training (5 of 10)"
    assert line_of(view(replace(SAMPLING, at=NOW - 5000)), "stage") == "training: sampling for 2m (5 of 10)"


def test_a_slow_training_is_told_in_seconds_per_step() -> None:
    assert "23.9 s/step" in line_of(view(replace(TRAINING, steps_per_second=0.0418)), "progress")


def test_a_row_of_the_list_has_stage_speed_and_eta() -> None:
    assert row(view(SAMPLING))[2:] == [
        "EXECUTING", "training: sampling for 2m", "40/400 (10%)", "0.250", "0.50 steps/s", "12m",
    ]  # fmt: skip
    ended = view(state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED)
    assert row(ended)[2:] == ["COMPLETED", "completed", "40/400 (10%)", "0.250"]


def row(found: JobView) -> list[str]:
    """The cells of a job's row that have a text, without the time of its submission."""
    _, line = table_lines(COLUMNS[:-1], [job_row(found)[:-1]], width=None)
    return re.split("  +", line)


def printed(*views: JobView) -> list[str]:
    changes = ChangeLines()
    return [line for line in map(changes.next, views) if line is not None]


def test_in_a_pipe_no_line_of_a_state_comes_twice() -> None:
    nothing, loading = Progress(), Progress(phase="loading")
    lines = printed(
        view(nothing), view(loading), view(nothing), view(loading), view(), view(SAMPLING), view(), view(SAMPLING)
    )
    assert lines == [
        "EXECUTING",
        "EXECUTING          loading",
        "EXECUTING          40/400 (10%), loss 0.250, 0.50 steps/s, ETA 12m",
        "EXECUTING          sampling, 40/400 (10%), loss 0.250, 0.50 steps/s, ETA 12m",
    ]


def test_each_tenth_of_the_training_and_each_state_gets_its_line() -> None:
    steps = [replace(TRAINING, step=step) for step in (40, 41, 79, 80, 119, 120)]
    assert [line.split()[1] for line in printed(*map(view, steps))] == ["40/400", "80/400", "120/400"]
    lost = view(unreachable_since=1.0)
    assert [line.split()[0] for line in printed(view(), lost, view(), lost)] == [
        "EXECUTING", "NEEDS_RECOVERY", "EXECUTING", "NEEDS_RECOVERY",
    ]  # fmt: skip


def test_a_transfer_gets_a_line_per_tenth() -> None:
    def sending(done: int) -> JobView:
        found = view(Progress(), state=State.TRANSFERRING_DATA)
        machine = replace(found.job.machine, transfer=Transfer(way="sending", bytes=done, total=100_000_000))
        return replace(found, job=replace(found.job, machine=machine))

    lines = printed(sending(0), sending(1_000_000), sending(50_000_000), sending(50_000_000))
    assert [line.split(maxsplit=1)[1] for line in lines] == ["sending 0.0 of 100.0 MB", "sending 50.0 of 100.0 MB"]


def provisioning(message: str | None) -> JobView:
    found = view(Progress(), state=State.PROVISIONING, watching=Watching())
    return replace(found, job=replace(found.job, machine=replace(found.job.machine, starting=message)))


def test_the_pull_of_an_image_is_told_once_however_its_counters_move() -> None:
    lines = printed(
        provisioning(None),
        provisioning("Pulling trainer: 1.5 MB"),
        provisioning("Pulling trainer: 7 MB"),
        provisioning("Extracting"),
        provisioning("Pulling trainer: 9 MB"),
    )
    assert lines == ["PROVISIONING", "PROVISIONING       Pulling trainer: 1.5 MB", "PROVISIONING       Extracting"]
    assert line_of(provisioning("Extracting"), "machine") == "Extracting"


def test_no_two_lines_differ_only_in_a_clock() -> None:
    later = replace(SAMPLING, eta_seconds=700.0, steps_per_second=0.4)
    assert len(printed(view(SAMPLING), view(), view(later), view(replace(TRAINING, eta_seconds=690.0)))) == 2
