"""A job ends for the reason that is true, whatever came together to end it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.control.periodic.sweep_report import Act
from stationmaster.control.periodic.sweep_rules import Subject, judge_machine
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.provisioning import handler as provisioning
from stationmaster.errors import ProviderBusy
from stationmaster.model import (
    Desired,
    Ending,
    Fetching,
    Job,
    MachineStatus,
    Reason,
    RentedMachine,
    SavedModel,
    State,
)
from stationmaster.remote.status import Finished, Status, StepStatus, Supervisor
from tests.support.jobs.spine_values import INSTALLATION, MACHINE, job, listing, machine, rental, visit

POLICY = Policy()


def not_yet_training(before: Job) -> Job:
    """The job after a look at a machine on which the training step has not begun."""
    pending = StepStatus(index=0, name="train", state="pending", training=True)
    status = Status(
        wall=0.0, monotonic=0.0, boot_id="b", started=True, supervisor=Supervisor(alive=True, pid=1), steps=(pending,)
    )
    step = executing.decide(ExecutingView(visit=visit(before, now=100.0), status=status), POLICY)
    assert step.write is not None
    return step.write.job


def at_work(ending: Reason | None = None) -> Job:
    return job(state=State.EXECUTING, state_since=90.0, machine=MACHINE, ending=Ending(reason=ending))


def test_a_machine_that_was_stopped_before_the_training_began_costs_an_attempt_and_is_nobodys_wish() -> None:
    after = not_yet_training(at_work(Reason.MACHINE_STOPPED))
    assert (after.state, after.outcome) == (State.RELEASING, None)
    assert after.ending.further == Reason.MACHINE_LOST


def test_a_stop_before_the_training_began_is_a_cancel() -> None:
    after = not_yet_training(replace(at_work(), desired=Desired.STOP))
    assert after.reason is Reason.CANCELLED_BY_USER


@pytest.mark.parametrize("status", [MachineStatus.STOPPED, MachineStatus.OFFLINE, MachineStatus.FAILED])
def test_a_machine_that_is_down_before_its_first_login_is_not_waited_for(status: MachineStatus) -> None:
    seen = provisioning.Listed(
        visit=visit(job(state=State.PROVISIONING, state_since=90.0), now=100.0),
        create_limit_seconds=30.0,
        rental=rental(),
        listing=listing(machine(status=status)),
    )
    step = provisioning.decide(seen, POLICY)
    assert step.write is not None
    assert step.write.job.ending.further == Reason.MACHINE_NOT_READY


def test_a_login_that_never_worked_says_why_and_what_to_check() -> None:
    before = job(
        state=State.PROVISIONING,
        state_since=0.0,
        failed_before_login=2,
        machine=RentedMachine(login_problem="not let in with the key /k; `stationmaster keys check` says"),
    )
    seen = provisioning.NoAnswer(visit=visit(before, now=2000.0), rental=rental(), problem=ProviderBusy("no answer"))
    step = provisioning.decide(seen, POLICY)
    assert step.write is not None
    assert step.write.job.reason is Reason.MACHINE_NOT_READY
    assert "stationmaster keys check" in (step.write.job.explanation or "")


@pytest.mark.parametrize(("stopped_at", "ending"), [(None, Reason.OUTBID), (95.0, Reason.MACHINE_STOPPED)])
def test_a_bids_machine_is_started_whoever_stopped_it_and_our_own_sweep_is_no_higher_bid(
    stopped_at: float | None, ending: Reason
) -> None:
    stopped = machine(status=MachineStatus.STOPPED, interruptible=True)
    sighting = Sighting(fate=Fate.STOPPED, rental=rental(stopped_at=stopped_at), machine=stopped)
    seen = ExecutingView(visit=visit(at_work(), now=100.0), status=None, problem="no answer", sighting=sighting)
    step = executing.decide(seen, POLICY)
    assert step.then is not None, "its model is still on its disk"
    assert step.write is not None
    assert step.write.job.ending.reason == ending


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (State.RELEASING, None)),
        ({"failed_after_login": 2, "model": SavedModel(attempt=1)}, (State.FINALIZING, Reason.MACHINE_STOPPED)),
        ({"desired": Desired.STOP}, (State.FINALIZING, Reason.STOPPED_BY_USER)),
        ({"deadline_at": 99.0}, (State.FINALIZING, Reason.HARD_LIMIT)),
    ],
)
def test_a_training_cut_short_by_a_higher_bid_goes_on_elsewhere_unless_nothing_may_follow(
    changes: dict[str, Any], expected: tuple[State, Reason | None]
) -> None:
    known = replace(at_work(Reason.OUTBID), fetching=Fetching(wanted=()))
    before = replace(known, state=State.FETCHING_RESULTS, **changes)
    step = fetching.decide(fetching.FetchingView(visit=visit(before, now=100.0)), POLICY)
    assert step.write is not None
    after = step.write.job
    assert after.state is expected[0]
    if expected[1] is None:
        assert after.ending.further == Reason.OUTBID
    else:
        assert after.ending.reason == expected[1]


def test_a_training_that_was_done_before_its_machine_was_stopped_has_finished() -> None:
    done = StepStatus(index=0, name="train", state="done", training=True, started_at=1.0, exit_code=0)
    status = Status(
        wall=0.0,
        monotonic=0.0,
        boot_id="b",
        started=True,
        supervisor=Supervisor(alive=False, pid=None),
        steps=(done,),
        finished=Finished(result="done", at=2.0),
    )
    before = at_work(Reason.MACHINE_STOPPED)
    step = executing.decide(ExecutingView(visit=visit(before, now=100.0), status=status), POLICY)
    assert step.write is not None
    assert (step.write.job.state, step.write.job.ending.reason) == (State.FETCHING_RESULTS, Reason.FINISHED)


@pytest.mark.parametrize(("unreachable_since", "act"), [(None, Act.STOP), (95.0, Act.LEAVE)])
def test_a_training_that_cannot_be_seen_is_not_a_stuck_one(unreachable_since: float | None, act: Act) -> None:
    subject = Subject(
        machine=machine(),
        installation=INSTALLATION,
        rental=rental(),
        job=replace(at_work(), unreachable_since=unreachable_since, deadline_at=1e9),
    )
    assert judge_machine(subject, now=90.0 + 7201.0, policy=POLICY).act is act
