"""What people hear of a training, each thing once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.states.executing.training_events import (
    MILESTONES,
    News,
    checkpoint_step,
    duration_news,
    end_events,
    epoch_news,
    milestone_news,
    step_news,
)
from stationmaster.model import Ending, Job, Progress, Reason, Watching
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.status import StepStatus
from tests.support.jobs.spine_values import job

OUTPUTS = (Output(kind=OutputKind.CHECKPOINT, pattern="output/*.safetensors", step=r"-(\d+)\.safetensors$"),)


def step(state: Any, *, training: bool = True) -> StepStatus:
    return StepStatus(index=0, name="train", state=state, training=training)


@given(st.lists(st.integers(0, 1000)))
def test_each_milestone_is_told_at_most_once_and_in_order(steps: list[int]) -> None:
    now, told = job(), []
    for number in steps:
        news = milestone_news(now, Progress(step=number, total_steps=1000))
        now = news.job
        told += [event.payload["percent"] for event in news.events]
    assert told == sorted(set(told))
    assert set(told) <= set(MILESTONES)


def test_a_steady_run_tells_every_milestone() -> None:
    now, told = job(), []
    for number in range(100):
        news = milestone_news(now, Progress(step=number, total_steps=100))
        now = news.job
        told += [event.payload["percent"] for event in news.events]
    assert told == list(MILESTONES)


def test_of_milestones_passed_at_once_only_the_last_is_told() -> None:
    (event,) = milestone_news(job(), Progress(step=80, total_steps=100)).events
    assert event.payload["percent"] == 75


@pytest.mark.parametrize("progress", [Progress(), Progress(step=5), Progress(step=100, total_steps=100)])
def test_no_milestone_without_a_goal_or_at_the_end(progress: Progress) -> None:
    assert milestone_news(job(), progress) == News(job=job())


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [(None, 3.0, []), (1.0, 1.0, []), (1.2, 1.9, []), (0.9, 1.0, [1]), (1, 2, [2]), (1, 5, [5]), (3, 1, [])],
)
def test_an_epoch_has_ended_when_a_later_one_is_counted(before: Any, after: Any, told: list[int]) -> None:
    events = epoch_news(job(progress=Progress(epoch=before)), Progress(epoch=after)).events
    assert [event.payload["epoch"] for event in events] == told


@pytest.mark.parametrize(("before", "after", "told"), [(1, 1, []), (1, 2, [1]), (1, 5, [4]), (3, 1, []), (None, 1, [])])
def test_where_a_trainer_says_which_epoch_begins_the_one_before_has_ended(
    before: Any, after: Any, told: list[int]
) -> None:
    events = epoch_news(job(progress=Progress(epoch=before)), Progress(epoch=after), names_beginning=True).events
    assert [event.payload["epoch"] for event in events] == told


@given(st.integers(1, 400))
def test_a_small_dataset_does_not_flood_people_with_its_epochs(steps_per_epoch: int) -> None:
    now, told = job(progress=Progress(step=0, epoch=0.0)), 0
    for number in range(1, 401):
        progress = Progress(step=number, total_steps=400, epoch=number / steps_per_epoch)
        news = epoch_news(now, progress)
        now, told = replace(news.job, progress=progress), told + len(news.events)
    assert told <= 20
    assert told >= min(1, 400 // max(20, steps_per_epoch))


def starts(before: Job, steps: list[StepStatus]) -> list[Any]:
    return [event.payload for event in step_news(before, steps).events if event.kind == "training_started"]


def test_the_start_is_told_when_the_training_step_is_first_seen() -> None:
    assert starts(job(), [step("pending"), step("running", training=False)]) == []
    assert starts(job(attempt=2), [step("running")]) == [{"attempt": 2, "step": "train"}]
    assert starts(job(watching=Watching(steps={"train": "running.1"})), [step("done")]) == []


def test_the_start_is_told_once_an_attempt_however_many_steps_train() -> None:
    first, second = step("done"), replace(step("running"), index=1, name="refine")
    assert starts(job(), [first, second]) == [{"attempt": 1, "step": "train"}]
    trained = job(watching=Watching(steps={"train": "done.1"}, trained=True))
    assert starts(trained, [first, second]) == []
    assert starts(trained.next_attempt(), [step("running")]) == [{"attempt": 2, "step": "train"}]


def test_an_end_that_nobody_asked_for_names_the_latest_checkpoint() -> None:
    files = {
        "output/a-50.safetensors": (1, 1.0),
        "output/a-200.safetensors": (1, 1.0),
        "output/a.safetensors": (1, 1.0),
    }
    ended = job(ending=Ending(reason=Reason.STALLED), watching=Watching(outputs=files))
    (event,) = end_events(ended, OUTPUTS)
    assert event.payload == {"reason": "STALLED", "checkpointStep": 200}
    assert checkpoint_step(job(), OUTPUTS) is None
    asked = replace(ended, ending=Ending(reason=Reason.STOPPED_BY_USER))
    assert end_events(asked, OUTPUTS) == ()
    assert end_events(job(ending=Ending(reason=Reason.FINISHED)), OUTPUTS) == ()


@pytest.mark.parametrize(
    ("deadline_at", "message"),
    [
        (4 * 3600.0, "has run 80 min (estimate 60 min); will be stopped at its limit of 4h"),
        (None, "has run 80 min (estimate 60 min)"),
    ],
)
def test_a_training_that_outlasts_its_estimate_is_an_alert_with_its_limit(
    deadline_at: float | None, message: str
) -> None:
    spec = replace(job().spec, quote=replace(job().spec.quote, hours_expected=1.0))
    long = job(spec=spec, state_since=0.0, deadline_at=deadline_at)
    assert duration_news(long, now=75 * 60.0).alerts == ()
    (alert,) = duration_news(long, now=80 * 60.0).alerts
    assert (alert.kind, alert.message) == ("soft_limit", message)
