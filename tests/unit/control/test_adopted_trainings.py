"""What a job may conclude about a training that it did not start, and what it may do to its machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.machine.letting_go import is_let_go, is_only_left
from stationmaster.control.machine.release import Evidence
from stationmaster.control.periodic.sweep_report import Act
from stationmaster.control.periodic.sweep_rules import Subject, judge_machine
from stationmaster.control.states import queued
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.lifecycle import REASONS, may_try_again
from stationmaster.model import (
    UNLIMITED_SECONDS,
    AdoptedTraining,
    Desired,
    Ending,
    Fetching,
    Job,
    Outcome,
    Reason,
    RentalState,
    State,
)
from stationmaster.store.codec import spec_from_text, spec_to_text
from tests.support.jobs.spine_values import INSTALLATION, MACHINE, job, listing, machine, rental, spec, visit

PROCESS = {"pid": 77, "start_time": "1234", "boot_id": "b", "pgid": 77}
POLICY = Policy()
TRAINING = AdoptedTraining(
    target="7835610",
    log="/run/*.log",
    output="/run/out",
    process=PROCESS,
    instance="m1",
    release=True,
    label_before="ann's machine",
    unknown=("Its exit code.",),
)


def adopted(*, training: AdoptedTraining = TRAINING, **fields: Any) -> Job:
    given = spec(adopted=training, recipe="adopted@1", max_seconds=UNLIMITED_SECONDS)
    return job(**{"spec": given, "state": State.RELEASING, "machine": MACHINE, **fields})


def test_what_was_found_is_stored_and_read_again() -> None:
    given = spec(adopted=TRAINING)
    assert spec_from_text(spec_to_text(given)) == given


def test_a_process_is_the_same_only_with_its_start_and_boot() -> None:
    assert TRAINING.is_same_process(replace(TRAINING, target="box"))
    for changed in ({"pid": 78}, {"start_time": "1235"}, {"boot_id": "c"}):
        assert not TRAINING.is_same_process(replace(TRAINING, process={**PROCESS, **changed}))
    assert not TRAINING.is_same_process(replace(TRAINING, process=None))


def test_a_training_of_others_is_never_tried_again() -> None:
    assert not any(may_try_again(adopted(), reason) for reason in Reason)


@pytest.mark.parametrize("reason", list(Reason))
def test_only_the_end_of_the_training_or_a_person_destroys_its_machine(reason: Reason) -> None:
    """What failed before the training was seen gives no right to end it."""
    ended = adopted(reason=reason, outcome=REASONS[reason].outcome)
    saw_nothing = REASONS[reason].outcome is Outcome.FAILED_PROVISIONING or reason in (
        Reason.TRANSFER_FAILED,
        Reason.INTERNAL_ERROR,
        Reason.OUT_OF_CREDIT,
    )
    assert is_let_go(ended) is saw_nothing
    assert not is_let_go(replace(ended, desired=Desired.CANCEL))
    assert not is_let_go(job(reason=reason))
    assert not is_let_go(adopted(training=replace(TRAINING, release=False), reason=reason))


def test_a_stop_before_the_training_was_seen_leaves_it_alone() -> None:
    assert is_let_go(adopted(reason=Reason.CANCELLED_BY_USER, desired=Desired.STOP))


def test_a_machine_that_is_let_go_gets_its_label_back_and_is_never_destroyed() -> None:
    ended = adopted(reason=Reason.MACHINE_NOT_READY, outcome=Outcome.FAILED_PROVISIONING)
    held = rental()
    view = releasing.ReleasingView(visit=visit(ended), installation=INSTALLATION, rentals=(held,), costs=())

    def decided(label: str) -> Any:
        seen = listing(machine("m1", label=label))
        evidence = Evidence(listing=seen, single_reads={}, create_limit_seconds=1.0)
        return releasing.decide(replace(view, evidence=evidence), POLICY)

    first = decided(held.label)
    assert first.then == releasing.LetGo(provider_ids=("m1",), label="ann's machine")
    after = decided("ann's machine")
    assert after.then is None
    assert [each.state for each in after.write.rentals] == [RentalState.GONE]
    assert "machine_left" in [event.kind for event in after.write.events]


@pytest.mark.parametrize("desired", [Desired.STOP, Desired.CANCEL])
def test_a_stop_waits_until_the_training_can_be_stopped_and_a_cancel_does_not(desired: Desired) -> None:
    asked = adopted(state=State.QUEUED, desired=desired)
    write = queued.decide(visit(asked), POLICY).write
    assert write is not None
    assert write.job.state is (State.PROVISIONING if desired is Desired.STOP else State.ENDED)
    ours = queued.decide(visit(job(desired=desired)), POLICY).write
    assert ours is not None
    assert ours.job.state is State.ENDED


def test_a_cancel_that_keeps_leaves_a_training_alone_unless_its_machine_is_to_be_released() -> None:
    keeping = adopted(desired=Desired.CANCEL_KEEP)
    assert not is_only_left(keeping)
    mine = replace(TRAINING, release=False)
    assert is_only_left(adopted(training=mine, desired=Desired.CANCEL_KEEP))
    assert not is_only_left(adopted(training=mine, desired=Desired.STOP))
    assert not is_only_left(job(desired=Desired.CANCEL_KEEP))


def test_a_machine_on_which_no_model_was_found_is_stopped_and_not_destroyed() -> None:
    """The output folder may be the wrong one."""
    over = adopted(state=State.FETCHING_RESULTS, ending=Ending(reason=Reason.STEP_FAILED), fetching=Fetching(wanted=()))
    view = fetching.FetchingView(visit=visit(over), can_stop=True)
    write = fetching.decide(view, POLICY).write
    assert write is not None
    assert write.job.ending.parked is not None
    assert "/run/out" in write.job.ending.parked.why
    own = fetching.decide(replace(view, visit=visit(job(**_without_spec(over)))), POLICY).write
    assert own is not None
    assert own.job.ending.parked is None


def _without_spec(ended: Job) -> dict[str, Any]:
    return {"state": ended.state, "ending": ended.ending, "fetching": ended.fetching, "machine": ended.machine}


def test_the_sweep_does_not_call_a_silent_training_stuck_but_keeps_its_limit() -> None:
    running = adopted(state=State.EXECUTING, deadline_at=1e9)
    subject = Subject(
        machine=machine("m1", label=rental().label), installation=INSTALLATION, rental=rental(), job=running
    )
    later = POLICY.sweep.stuck * 10
    assert judge_machine(subject, now=later, policy=POLICY).act is Act.LEAVE
    late = replace(subject, job=replace(running, deadline_at=1.0))
    assert judge_machine(late, now=later, policy=POLICY).act is Act.STOP
    ours = replace(subject, job=replace(running, spec=spec()))
    assert judge_machine(ours, now=later, policy=POLICY).act is Act.STOP
