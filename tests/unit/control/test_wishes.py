"""Stop, cancel and cancel --keep in every state: what each does, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Step
from stationmaster.control.machine.release import Evidence
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.control.states import ended, queued
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.finalizing import handler as finalizing
from stationmaster.control.states.provisioning import handler as provisioning
from stationmaster.control.states.provisioning.market import Market
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.control.states.transferring import handler as transferring
from stationmaster.model import Desired, Ending, Job, Outcome, Reason, SavedModel, State
from stationmaster.remote.status import Finished, Status, StepStatus, Supervisor
from tests.support.jobs.spine_values import (
    INSTALLATION,
    MACHINE,
    job,
    listing,
    machine,
    offer,
    rental,
    requested,
    visit,
)

POLICY = Policy()
WISHES = [Desired.STOP, Desired.CANCEL, Desired.CANCEL_KEEP]
CANCELS = [Desired.CANCEL, Desired.CANCEL_KEEP]
MODEL = SavedModel(address="/m")
CLOCKS: dict[str, Any] = {"wall": 0.0, "monotonic": 0.0, "boot_id": "b", "started": True}


def status(
    *, training_began: bool = True, finished: Finished | None = None, alive: bool = True, **fields: Any
) -> Status:
    steps = (
        StepStatus(index=0, name="check", state="done", started_at=1.0),
        StepStatus(
            index=1,
            name="train",
            state="running" if training_began else "pending",
            training=True,
            started_at=2.0 if training_began else None,
        ),
    )
    supervisor = Supervisor(alive=alive, pid=7)
    return Status(**CLOCKS, supervisor=supervisor, steps=steps, finished=finished)


def wished(state: State, desired: Desired, **fields: Any) -> Job:
    return job(state=state, desired=desired, desired_seq=1, seen_seq=1, machine=MACHINE, **fields)


def written(step: Step[Any]) -> Job:
    assert step.write is not None
    return step.write.job


@pytest.mark.parametrize("desired", WISHES)
def test_a_queued_job_ends_at_once(desired: Desired) -> None:
    step = queued.decide(visit(wished(State.QUEUED, desired)), POLICY)
    assert step.then is None
    after = written(step)
    assert (after.state, after.outcome) == (State.ENDED, Outcome.CANCELLED)
    assert step.write is not None
    assert step.write.due_in is None


@pytest.mark.parametrize("desired", WISHES)
@pytest.mark.parametrize("held", [None, requested(), rental()])
def test_while_a_machine_is_sought_every_wish_gives_it_back(desired: Desired, held: Any) -> None:
    visited = visit(wished(State.PROVISIONING, desired))
    seen: Any = provisioning.NoRental(visit=visited, installation=INSTALLATION)
    if held is not None:
        seen = provisioning.Listed(
            visit=visited,
            rental=held,
            listing=listing(machine()),
            create_limit_seconds=0.0,
            market=Market(asked_at=0.0, offers=(offer(),)),
        )
    step = provisioning.decide(seen, POLICY)
    assert step.then is None
    assert (written(step).state, written(step).outcome) == (State.RELEASING, Outcome.CANCELLED)


@pytest.mark.parametrize("desired", WISHES)
def test_before_the_training_a_stop_acts_as_a_cancel(desired: Desired) -> None:
    moving = transferring.TransferringView(visit=visit(wished(State.TRANSFERRING_DATA, desired)))
    starting = ExecutingView(visit=visit(wished(State.EXECUTING, desired)), status=status(training_began=False))
    for step in (transferring.decide(moving, POLICY), executing.decide(starting, POLICY)):
        assert step.then is None
        assert (written(step).state, written(step).outcome) == (State.RELEASING, Outcome.CANCELLED)


def test_a_cancel_during_the_training_needs_no_answer_of_the_machine() -> None:
    seen = ExecutingView(visit=visit(wished(State.EXECUTING, Desired.CANCEL)), status=None, problem="no answer")
    step = executing.decide(seen, POLICY)
    assert (step.then, written(step).state, written(step).outcome) == (None, State.RELEASING, Outcome.CANCELLED)


@pytest.mark.parametrize(
    ("desired", "reason"),
    [(Desired.STOP, Reason.STOPPED_BY_USER), (Desired.CANCEL_KEEP, Reason.CANCELLED_BY_USER)],
)
def test_a_stop_during_the_training_writes_down_why_and_then_stops_it(desired: Desired, reason: Reason) -> None:
    step = executing.decide(ExecutingView(visit=visit(wished(State.EXECUTING, desired)), status=status()), POLICY)
    assert isinstance(step.then, executing.Stop)
    assert written(step).ending.reason == reason
    assert (written(step).state, written(step).outcome) == (State.EXECUTING, None)


@pytest.mark.parametrize("desired", [Desired.STOP, Desired.CANCEL_KEEP])
def test_a_stop_of_a_silent_machine_waits_for_its_answer(desired: Desired) -> None:
    seen = ExecutingView(visit=visit(wished(State.EXECUTING, desired)), status=None, problem="no route")
    step = executing.decide(seen, POLICY)
    assert (written(step).state, written(step).outcome) == (State.EXECUTING, None)
    assert written(step).unreachable_since is not None


def test_a_training_that_ended_by_itself_before_the_stop_came_is_complete() -> None:
    finished = status(finished=Finished(result="done"), alive=False)
    step = executing.decide(ExecutingView(visit=visit(wished(State.EXECUTING, Desired.STOP)), status=finished), POLICY)
    assert (written(step).state, written(step).ending.reason) == (State.FETCHING_RESULTS, Reason.FINISHED)


def test_a_stopped_training_is_fetched_as_stopped_even_if_its_step_says_failed() -> None:
    stopping = wished(State.EXECUTING, Desired.STOP, ending=Ending(reason=Reason.STOPPED_BY_USER))
    finished = status(finished=Finished(result="failed"), alive=False)
    step = executing.decide(ExecutingView(visit=visit(stopping), status=finished), POLICY)
    assert written(step).ending.reason == Reason.STOPPED_BY_USER


@pytest.mark.parametrize("desired", [Desired.STOP, Desired.CANCEL_KEEP])
def test_while_results_are_fetched_a_stop_changes_nothing(desired: Desired) -> None:
    with_and_without = [
        fetching.decide(fetching.FetchingView(visit=visit(wished(State.FETCHING_RESULTS, wish))), POLICY).then
        for wish in (desired, Desired.RUN)
    ]
    assert with_and_without[0] == with_and_without[1]


@pytest.mark.parametrize("state", [State.FETCHING_RESULTS, State.FINALIZING])
def test_a_cancel_skips_what_is_left(state: State) -> None:
    cancelled = wished(state, Desired.CANCEL, ending=Ending(reason=Reason.FINISHED), model=MODEL)
    if state is State.FETCHING_RESULTS:
        step: Step[Any] = fetching.decide(fetching.FetchingView(visit=visit(cancelled)), POLICY)
    else:
        step = finalizing.decide(finalizing.FinalizingView(visit=visit(cancelled)), POLICY)
    assert step.then is None
    assert (written(step).state, written(step).outcome) == (State.RELEASING, Outcome.CANCELLED)


@pytest.mark.parametrize(
    ("desired", "ending", "reason"),
    [
        (Desired.RUN, Reason.FINISHED, Reason.FINISHED),
        (Desired.STOP, Reason.FINISHED, Reason.FINISHED),
        (Desired.STOP, Reason.STOPPED_BY_USER, Reason.STOPPED_BY_USER),
        (Desired.CANCEL_KEEP, Reason.FINISHED, Reason.CANCELLED_BY_USER),
        (Desired.RUN, Reason.STEP_FAILED, Reason.STEP_FAILED),
    ],
)
def test_what_the_outcome_will_be_once_the_model_is_safe(desired: Desired, ending: Reason, reason: Reason) -> None:
    at_home = wished(State.FINALIZING, desired, ending=Ending(reason=ending), model=MODEL)
    assert finalizing.final_reason(at_home) is reason


def test_a_training_that_says_it_finished_but_left_no_model_has_failed() -> None:
    empty = wished(State.FINALIZING, Desired.RUN, ending=Ending(reason=Reason.FINISHED))
    assert finalizing.final_reason(empty) is Reason.NO_MODEL


def evidence(*machines: Any, **fields: Any) -> Evidence:
    return Evidence(listing=listing(*machines), single_reads={}, create_limit_seconds=0.0, **fields)


@pytest.mark.parametrize("desired", WISHES)
@pytest.mark.parametrize(("model", "outcome"), [(MODEL, Outcome.INCOMPLETE), (SavedModel(), Outcome.CANCELLED)])
def test_between_two_attempts_every_wish_ends_the_job(desired: Desired, model: SavedModel, outcome: Outcome) -> None:
    between = wished(State.RELEASING, desired, ending=Ending(further=Reason.MACHINE_LOST), model=model)
    seen = releasing.ReleasingView(
        visit=visit(between), installation=INSTALLATION, rentals=(), costs=(), evidence=evidence()
    )
    step = releasing.decide(seen, POLICY)
    assert (written(step).state, written(step).outcome) == (State.ENDED, outcome)


@pytest.mark.parametrize("desired", WISHES)
@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.FAILED])
def test_an_outcome_that_is_written_stays_whatever_is_wished(desired: Desired, outcome: Outcome) -> None:
    leaving = wished(State.RELEASING, desired, outcome=outcome, reason=Reason.FINISHED)
    seen = releasing.ReleasingView(
        visit=visit(leaving), installation=INSTALLATION, rentals=(), costs=(), evidence=evidence()
    )
    assert (written(releasing.decide(seen, POLICY)).outcome) is outcome
    over = wished(State.ENDED, desired, outcome=outcome)
    assert written(ended.decide(visit(over), POLICY)) == over


@pytest.mark.parametrize("desired", CANCELS)
def test_a_machine_that_was_lost_is_not_replaced_for_somebody_who_wants_out(desired: Desired) -> None:
    lost = wished(State.FETCHING_RESULTS, desired)
    step = fetching.decide(fetching.FetchingView(visit=visit(lost), sighting=Sighting(fate=Fate.GONE)), POLICY)
    assert written(step).outcome is not None
    assert written(step).ending.further is None
