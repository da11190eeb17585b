"""A job that keeps tripping is tried again, but neither past its limit nor against its owner's wish."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.control.internal_errors import after_internal_error, with_errors_cleared
from stationmaster.lifecycle import is_parked
from stationmaster.model import Desired, Ending, Job, Outcome, Reason, SavedModel, Setbacks, State
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import MACHINE, job
from tests.support.policies import changed

POLICY = changed(retry_seconds=(2.0, 5.0), limits={"fetch": 3600.0})
LIMIT = 1000.0


def tripped(state: State, *, errors: int = 2, now: float = LIMIT + 1, **fields: Any) -> Write:
    """What is written when an internal error happens once more."""
    values: dict[str, Any] = {"deadline_at": LIMIT, "state_since": 0.0, **fields}
    before = job(state=state, machine=MACHINE, setbacks=Setbacks(internal_errors=errors), **values)
    return after_internal_error(before, "it broke", now=now, policy=POLICY)


def kinds(write: Write) -> list[str]:
    return [event.kind for event in write.events]


def test_it_is_told_once_alerted_each_time_and_tried_again_with_growing_pauses() -> None:
    first = tripped(State.EXECUTING, errors=0, now=0.0)
    assert (kinds(first), first.due_in, first.job.setbacks.internal_errors) == (["tripped"], 2.0, 1)
    later = tripped(State.EXECUTING, errors=7, now=0.0)
    assert (kinds(later), later.due_in, later.job.setbacks.internal_errors) == ([], 5.0, 8)
    assert [alert.message for alert in later.alerts] == ["in EXECUTING: it broke"]


@pytest.mark.parametrize("state", [State.PROVISIONING, State.EXECUTING, State.FETCHING_RESULTS, State.FINALIZING])
def test_one_error_past_the_limit_gives_nothing_up(state: State) -> None:
    assert tripped(state, errors=0).job.state is state


@pytest.mark.parametrize("state", [State.PROVISIONING, State.TRANSFERRING_DATA])
def test_before_the_training_the_machine_is_given_back_at_the_limit(state: State) -> None:
    after = tripped(state).job
    assert (after.state, after.outcome, after.reason) == (State.RELEASING, Outcome.FAILED, Reason.INTERNAL_ERROR)
    assert "it broke" in str(after.explanation)


@pytest.mark.parametrize("wish", [Desired.STOP, Desired.CANCEL, Desired.CANCEL_KEEP])
def test_before_the_training_every_wish_ends_it(wish: Desired) -> None:
    after = tripped(State.PROVISIONING, now=0.0, desired=wish).job
    assert (after.state, after.reason) == (State.RELEASING, Reason.CANCELLED_BY_USER)
    assert tripped(State.QUEUED, now=0.0, desired=wish).job.state is State.ENDED


@pytest.mark.parametrize(
    ("wish", "ending"),
    [
        (Desired.RUN, Reason.HARD_LIMIT),
        (Desired.STOP, Reason.STOPPED_BY_USER),
        (Desired.CANCEL_KEEP, Reason.CANCELLED_BY_USER),
    ],
)
def test_a_training_that_nobody_can_watch_leaves_its_model(wish: Desired, ending: Reason) -> None:
    write = tripped(State.EXECUTING, desired=wish)
    assert (write.job.state, write.job.ending.reason) == (State.FETCHING_RESULTS, ending)
    assert (write.due_in, write.job.outcome, write.job.setbacks.internal_errors) == (0.0, None, 0)


@pytest.mark.parametrize("state", [State.EXECUTING, State.FETCHING_RESULTS])
def test_who_cancels_does_not_wait_for_a_model(state: State) -> None:
    after = tripped(state, now=0.0, desired=Desired.CANCEL).job
    assert (after.state, after.reason) == (State.RELEASING, Reason.CANCELLED_BY_USER)


def test_a_model_is_fetched_for_a_while_before_its_machine_is_stopped_and_keeps_it() -> None:
    assert not is_parked(tripped(State.FETCHING_RESULTS, state_since=LIMIT).job)
    write = tripped(State.FETCHING_RESULTS, now=LIMIT + 3600)
    assert (write.job.state, is_parked(write.job), kinds(write)) == (State.FETCHING_RESULTS, True, ["machine_parked"])


def test_a_model_that_is_safe_is_not_lost_with_what_was_still_to_be_fetched() -> None:
    safe: dict[str, Any] = {
        "model": SavedModel(address="/home/m.safetensors", attempt=1),
        "ending": Ending(reason=Reason.FINISHED),
    }
    assert tripped(State.FETCHING_RESULTS, now=LIMIT + 3600, **safe).job.state is State.FINALIZING
    write = tripped(State.FINALIZING, **safe)
    assert (write.job.state, write.job.outcome) == (State.RELEASING, Outcome.COMPLETED)
    assert "outcome" in kinds(write)


@pytest.mark.parametrize("state", [State.RELEASING, State.ENDED])
def test_a_machine_is_asked_to_go_whatever_happens(state: State) -> None:
    after = tripped(state, errors=50, now=LIMIT * 100, desired=Desired.CANCEL)
    assert (after.job.state, after.due_in) == (state, 5.0)


def test_a_visit_that_went_well_takes_back_what_was_told() -> None:
    well: Job = job(setbacks=Setbacks(internal_errors=2))
    write = with_errors_cleared(Write(job=well))
    assert (write.job.setbacks.internal_errors, write.cleared_alerts) == (0, ("internal_error",))
