"""False answers and files of a machine: when they are an accident, when they end the attempt, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import at_fault
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.executing.status_intake import ExecutingView
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.fetching.wanted_files import within_cap
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.control.states.transferring import handler as transferring
from stationmaster.errors import FalseAnswer, FalseFile, MachineFault, TransferFailed
from stationmaster.model import Ending, Fetching, Job, Offer, OutputFile, Reason, SavedModel, Setbacks, State
from stationmaster.model.intake_limits import FALSE_ANSWERS
from stationmaster.money import MicroDollars
from stationmaster.remote.status import Status
from tests.support.jobs.spine_values import MACHINE, job, label, machine, rental, visit

POLICY = Policy()
MODEL, OTHER, SAMPLE = (
    OutputFile(path=f"output/{name}", kind=kind, size=100, mtime=1.0, sha256="0" * 64)
    for name, kind in (("a.safetensors", "checkpoint"), ("b.safetensors", "checkpoint"), ("c.png", "sample"))
)


def at(state: State, **fields: Any) -> Job:
    return job(**{"state": state, "state_since": 90.0, "machine": MACHINE, **fields})


def executed(before: Job, *, is_false: bool = True, fate: Fate = Fate.THERE) -> Job:
    seen = Sighting(fate=fate, rental=rental(), machine=machine())
    view = ExecutingView(
        visit=visit(before), status=None, problem="it answered nonsense", is_false=is_false, sighting=seen
    )
    step = executing.decide(view, POLICY)
    assert step.write is not None
    return step.write.job


def test_the_last_of_some_false_answers_in_a_row_ends_the_training_and_the_fetch_is_tried() -> None:
    known = at(State.EXECUTING)
    for number in range(1, FALSE_ANSWERS):
        known = executed(known)
        assert (known.state, known.setbacks.faults, known.machine.fault) == (State.EXECUTING, number, None)
    known = executed(known)
    assert (known.state, known.ending.reason) == (State.FETCHING_RESULTS, Reason.MACHINE_FAULT)
    assert known.machine.fault == "it answered nonsense"
    assert known.ending.closing is not None, "from here on its bill is bounded"


def test_silence_is_no_false_answer_and_a_machine_that_is_gone_is_gone() -> None:
    known = at(State.EXECUTING, setbacks=Setbacks(faults=FALSE_ANSWERS - 1))
    assert executed(known, is_false=False).machine.fault is None
    assert executed(known, fate=Fate.GONE).ending.further == Reason.MACHINE_LOST


def test_a_good_answer_forgives_the_false_ones_before_it() -> None:
    known = at(State.EXECUTING, setbacks=Setbacks(faults=FALSE_ANSWERS - 1))
    status = Status(wall=1.0, monotonic=1.0, boot_id="b", started=True)
    step = executing.decide(ExecutingView(visit=visit(known), status=status), POLICY)
    assert step.write is not None
    assert step.write.job.setbacks.faults == 0


def after_fault(before: Job, action: Any, problem: MachineFault) -> Job:
    return fetching._after_fault(action, before, problem, POLICY, now=100.0).job


def test_a_false_file_is_looked_at_again_and_then_left_out_for_the_next_best_model() -> None:
    wanted = Fetching(wanted=(MODEL, SAMPLE), spare_models=(OTHER,))
    known = at(State.FETCHING_RESULTS, fetching=wanted)
    problem = FalseFile("another hash")
    for _ in range(2):
        known = after_fault(known, fetching.Fetch(file=MODEL), problem)
        assert known.fetching == Fetching(), "the inventory is taken again"
        known = at(State.FETCHING_RESULTS, fetching=wanted, setbacks=known.setbacks)
    known = after_fault(known, fetching.Fetch(file=MODEL), problem)
    assert (known.fetching.wanted, known.machine.fault) == ((OTHER, SAMPLE), "another hash")
    known = after_fault(known, fetching.Fetch(file=OTHER), problem)
    known = after_fault(known, fetching.Fetch(file=SAMPLE), problem)
    assert known.fetching.wanted == ()


@pytest.mark.parametrize("has_model", [True, False])
def test_without_a_sound_model_the_attempt_was_the_machine_s_fault_and_with_one_the_job_goes_on(
    has_model: bool,
) -> None:
    model = SavedModel(attempt=1) if has_model else SavedModel()
    ending = Ending(reason=Reason.FINISHED)
    known = at(State.FETCHING_RESULTS, fetching=Fetching(wanted=()), model=model, ending=ending)
    known = at_fault(known, "another hash")
    step = fetching.decide(fetching.FetchingView(visit=visit(known)), POLICY)
    assert step.write is not None
    after = step.write.job
    assert after.state is (State.FINALIZING if has_model else State.RELEASING)
    assert after.ending.further is (None if has_model else Reason.MACHINE_FAULT)


def test_false_answers_to_the_inventory_end_the_attempt() -> None:
    known = at(State.FETCHING_RESULTS, setbacks=Setbacks(faults=FALSE_ANSWERS - 1))
    after = after_fault(known, fetching.TakeInventory(), FalseAnswer("too long"))
    assert (after.state, after.ending.further) == (State.RELEASING, Reason.MACHINE_FAULT)


def test_false_hashes_while_the_dataset_is_sent_are_the_machine_s_fault() -> None:
    known = at(State.TRANSFERRING_DATA, setbacks=Setbacks(failures=2))
    world: Any = type("Described", (), {"policy": POLICY})()
    write = transferring._send_failed(known, FalseFile("another hash"), now=100.0, world=world)
    assert (write.job.ending.further, write.job.machine.fault) == (Reason.MACHINE_FAULT, "another hash")
    write = transferring._send_failed(known, TransferFailed("refused"), now=100.0, world=world)
    assert (write.job.ending.further, write.job.machine.fault) == (Reason.TRANSFER_FAILED, None)


def test_the_host_of_a_machine_at_fault_is_remembered_when_it_is_released() -> None:
    offer = Offer(id="o1", provider="fake", price_per_hour=MicroDollars(1), machine_id="host-7")
    rentals = (rental(offer=offer, label=label()), rental(label=label(attempt=9), offer=None))
    known = at_fault(at(State.RELEASING), "another hash")
    (bad,) = releasing._blamed(known, rentals)
    assert (bad.provider, bad.machine_id, bad.why) == ("fake", "host-7", "another hash")
    assert releasing._blamed(at(State.RELEASING), rentals) == ()


def test_what_is_downloaded_together_stays_below_the_cap_and_a_model_above_it_is_not_given_up() -> None:
    assert within_cap((MODEL, SAMPLE, SAMPLE), cap_bytes=250) == ((MODEL, SAMPLE), 1)
    with pytest.raises(TransferFailed, match=r"artifacts.cap_bytes allows 99"):
        within_cap((MODEL,), cap_bytes=99)
