"""A log that prints no speed and no ETA: both are measured, shown, told in milestones, and kept in heartbeats."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.states.executing.heartbeats import MOST_HEARTBEATS, with_heartbeat
from stationmaster.control.states.executing.log_watch import ReadLog, read_log
from stationmaster.control.states.executing.training_events import milestone_news
from stationmaster.event_sentences import sentence
from stationmaster.model import Heartbeat, Job, Progress, State, Watching
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.settings import MonitoringSettings
from tests.support.jobs.spine_values import job, spec

HOME_CLOCK = 1000.0  # ahead of the machine's
TRAIN = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=0.0)


def look(watched: Job, text: str, *, at: float, framework: str = "auto") -> tuple[Job, ReadLog]:
    """What one poll at the machine's time `at` makes of a text that it finds."""
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(text), data=text.encode())
    status = Status(
        wall=at, monotonic=at, boot_id="b", started=True, steps=(TRAIN,), log=(piece,), training_alive=True
    )  # fmt: skip
    seen = read_log(watched, status, framework=framework, monitoring=MonitoringSettings(), now=at + HOME_CLOCK)
    return replace(watched, watching=seen.watching, progress=seen.progress), seen


def training(**fields: Any) -> Job:
    return job(state=State.EXECUTING, spec=replace(spec(), parameters={"steps": 400}), **fields)


def after_lines(count: int, *, seconds: float = 10.0) -> tuple[Job, ReadLog]:
    """A trainer that prints a line every ten steps, and nothing else."""
    watched, seen = look(training(), "Training started\n", at=0.0)
    for line in range(1, count + 1):
        watched, seen = look(watched, f"step {10 * line}/400 loss=0.5\n", at=line * seconds)
    return watched, seen


def test_speed_and_eta_are_measured_where_the_log_prints_none() -> None:
    watched, seen = after_lines(10)
    assert (watched.progress.step, watched.progress.total_steps) == (100, 400)
    assert watched.progress.steps_per_second == pytest.approx(1.0)
    assert watched.progress.eta_seconds == pytest.approx(300.0)
    assert [reading.steps_per_second for reading in seen.readings] == [pytest.approx(1.0)]


def test_what_the_trainer_prints_comes_first() -> None:
    watched = training()
    for step in (10, 20, 30, 40):
        bar = f"\rjob: 5%|#    | {step}/400 [00:05<00:45, 8.00it/s, lr: 1.0e-04 loss: 3.1e-01]"
        watched, _ = look(watched, bar, at=float(step), framework="ai-toolkit")
    assert (watched.progress.steps_per_second, watched.progress.eta_seconds) == (8.0, 45.0)


def test_a_milestone_tells_the_measured_eta() -> None:
    watched, _ = after_lines(10)
    (event,) = milestone_news(watched, watched.progress).events
    assert sentence(event.kind, event.payload) == "Reached 25%: step 100/400, loss 0.5, about 5m left."


def test_a_training_that_samples_says_since_when() -> None:
    watched = training()
    bar = "\rjob: 5%|#    | 20/400 [00:05<00:45, 8.00it/s, lr: 1.0e-04 loss: 3.1e-01]\n"
    watched, _ = look(watched, bar, at=10.0, framework="ai-toolkit")
    assert watched.progress.phase == "training"
    watched, _ = look(watched, "Generating Images:  25%|##5  | 1/4 [00:05<00:15,  5.00s/it]", at=30.0)
    assert (watched.progress.phase, watched.progress.phase_since) == ("sampling", HOME_CLOCK + 30.0)
    watched, _ = look(watched, "\rGenerating Images:  50%|##5  | 2/4 [00:05<00:15,  5.00s/it]", at=90.0)
    assert (watched.progress.phase, watched.progress.phase_since) == ("sampling", HOME_CLOCK + 30.0)


def test_an_alert_about_the_eta_waits_until_it_means_something() -> None:
    """The first steps of a training are slow, and an alert cannot be taken back."""
    assert not after_lines(3)[1].is_measured
    assert after_lines(14)[1].is_measured


def beats(minutes: int, **fields: Any) -> tuple[Heartbeat, ...]:
    found: tuple[Heartbeat, ...] = ()
    for minute in range(minutes):
        progress = Progress(step=minute, total_steps=minutes, eta_seconds=60.0 * (minutes - minute), **fields)
        found = with_heartbeat(found, progress, now=60.0 * minute)
    return found


def test_a_heartbeat_has_the_step_the_percent_and_the_eta() -> None:
    first, *_, last = beats(50, active_step="train")
    assert first == Heartbeat(at=0.0, step="train", percent=0.0, eta_seconds=3000.0)
    assert last == Heartbeat(at=2940.0, step="train", percent=98.0, eta_seconds=60.0)


def test_heartbeats_are_a_minute_apart_unless_another_step_begins() -> None:
    found = with_heartbeat((), Progress(active_step="install"), now=0.0)
    found = with_heartbeat(found, Progress(active_step="install"), now=59.0)
    found = with_heartbeat(found, Progress(active_step="train"), now=59.5)
    assert [(beat.at, beat.step) for beat in found] == [(0.0, "install"), (59.5, "train")]


def test_a_training_that_begins_and_ends_between_two_looks_has_one_heartbeat_at_its_end() -> None:
    found = with_heartbeat((), Progress(), now=0.0)
    for now in (1.0, 2.0):
        found = with_heartbeat(found, Progress(step=20, total_steps=20), now=now)
    assert [(beat.at, beat.percent) for beat in found] == [(0.0, None), (1.0, 100.0)]


@pytest.mark.parametrize("minutes", [61, 500, 5000])
def test_heartbeats_of_a_long_run_are_few_and_reach_back_to_its_start(minutes: int) -> None:
    found = beats(minutes, active_step="train" * 100)
    assert MOST_HEARTBEATS / 2 < len(found) <= MOST_HEARTBEATS
    assert found[0].at == 0.0
    assert found[-1].at == 60.0 * (minutes - 1)
    assert all(len(beat.step or "") <= 80 for beat in found)


def test_heartbeats_of_an_attempt_stay_for_the_next() -> None:
    known = beats(2)
    assert training(watching=Watching(heartbeats=known)).next_attempt().watching.heartbeats == known


def test_a_loss_that_is_not_a_number_is_shown_as_such() -> None:
    watched, _ = after_lines(3)
    watched, _ = look(watched, "step 40/400 loss=nan\n", at=40.0)
    assert watched.progress.loss is not None
    assert math.isnan(watched.progress.loss)
    watched, _ = look(watched, "", at=41.0)
    assert watched.progress.loss is not None
    assert math.isnan(watched.progress.loss), "nothing new was printed"
    watched, _ = look(watched, "step 50/400 loss=0.25\n", at=50.0)
    assert watched.progress.loss == 0.25
