"""When a rental is gone: only by two complete listings of the right account and a single read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Step
from stationmaster.control.machine.adoption import opened_cost
from stationmaster.control.machine.release import Evidence, Next, judge, needs_single_read
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.model import (
    Ending,
    Job,
    Listing,
    Outcome,
    Reason,
    Rental,
    RentalState,
    SavedModel,
    Setbacks,
    State,
    Watching,
)
from stationmaster.store.attempt_codec import attempt_to_json
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import (
    ACCOUNT,
    INSTALLATION,
    MACHINE,
    job,
    label,
    listing,
    machine,
    offer,
    rental,
    requested,
    visit,
)

POLICY = Policy()
LIMIT = 30.0

machines = st.builds(
    machine,
    st.sampled_from(["m1", "m2", "m3"]),
    label=st.sampled_from([label(), label(attempt=2), "web"]),
    created_at=st.floats(0, 10),
)
listings = st.builds(
    lambda found, complete, account: listing(*found, complete=complete, account=account),
    st.lists(machines, max_size=3, unique_by=lambda each: each.provider_id),
    st.booleans(),
    st.sampled_from([ACCOUNT, "somebody-else"]),
)
rentals = st.builds(
    rental,
    provider_id=st.sampled_from([None, "m1", "m2"]),
    create_sent_at=st.sampled_from([None, 0.0, 90.0]),
    absent_listings=st.integers(0, 3),
    release_asked_at=st.sampled_from([None, 50.0]),
    state=st.sampled_from([RentalState.REQUESTED, RentalState.HELD, RentalState.RELEASING]),
)
evidences = st.builds(
    Evidence,
    listing=listings,
    single_reads=st.dictionaries(st.sampled_from(["m1", "m2"]), st.booleans()),
    create_limit_seconds=st.just(LIMIT),
)


@given(rentals, evidences)
def test_nothing_is_gone_while_the_provider_still_lists_it(held: Rental, evidence: Evidence) -> None:
    judged = judge(held, evidence, now=100.0)
    ids = {each.provider_id for each in evidence.listing.machines}
    labels = {each.label for each in evidence.listing.machines}
    if held.provider_id in ids or (held.provider_id is None and held.label in labels):
        assert judged.next is Next.DESTROY
        assert judged.rental.state is RentalState.RELEASING
        assert judged.rental.provider_id is not None


@given(rentals, evidences)
def test_gone_needs_the_right_account_a_complete_listing_and_the_single_read(held: Rental, evidence: Evidence) -> None:
    judged = judge(held, evidence, now=100.0)
    if judged.rental.state is not RentalState.GONE or (held.provider_id is None and held.create_sent_at is None):
        return
    assert evidence.listing.complete
    assert evidence.listing.account == held.account
    assert held.absent_listings >= 1
    assert held.provider_id is None or evidence.single_reads[held.provider_id] is False


@given(rentals, st.lists(evidences, max_size=6))
def test_a_named_rental_is_gone_only_after_two_listings_without_it(held: Rental, looks: list[Evidence]) -> None:
    held, absences, owner = replace(held, absent_listings=0, provider_id="m1"), 0, ACCOUNT
    for evidence in looks:
        listed = any(each.provider_id == "m1" for each in evidence.listing.machines)
        owner = evidence.listing.account if listed else owner  # who lists it can show its absence
        counts = evidence.listing.complete and evidence.listing.account == owner
        absences = 0 if listed else absences + counts
        held = judge(held, evidence, now=100.0).rental
        if held.state is RentalState.GONE:
            assert absences >= 2
            return


@given(rentals, evidences)
def test_a_judgement_never_forgets_what_was_known(held: Rental, evidence: Evidence) -> None:
    judged = judge(held, evidence, now=100.0).rental
    assert (judged.label, judged.create_sent_at) == (held.label, held.create_sent_at)
    assert judged.account in (held.account, evidence.listing.account)
    if held.provider_id is not None:
        assert judged.provider_id == held.provider_id
    if held.release_asked_at is not None:
        assert judged.release_asked_at == held.release_asked_at, "the first time, however often it is repeated"


def test_an_intent_that_was_never_sent_is_gone_at_once() -> None:
    evidence = Evidence(listing=listing(complete=False), single_reads={}, create_limit_seconds=LIMIT)
    assert judge(requested(), evidence, now=100.0).rental.state is RentalState.GONE


def test_an_unanswered_create_is_not_gone_while_it_may_still_come_true() -> None:
    asked = requested(create_sent_at=80.0, account=ACCOUNT)
    evidence = Evidence(listing=listing(), single_reads={}, create_limit_seconds=LIMIT)
    early = judge(asked, evidence, now=105.0)
    assert (early.next, early.rental.absent_listings) == (Next.LOOK_AGAIN, 0)
    late = judge(early.rental, evidence, now=111.0)
    assert late.rental.state is RentalState.RELEASING
    assert judge(late.rental, evidence, now=112.0).rental.state is RentalState.GONE


def test_the_single_read_is_asked_for_only_when_it_decides() -> None:
    assert not needs_single_read(rental(absent_listings=0), listing())
    assert needs_single_read(rental(absent_listings=1), listing())
    assert not needs_single_read(rental(absent_listings=1), listing(complete=False))
    assert not needs_single_read(rental(absent_listings=1), listing(account="somebody-else"))
    assert not needs_single_read(rental(absent_listings=1), listing(machine()))
    assert not needs_single_read(requested(), listing())


def seen(
    *held: Rental, found: Listing | None = None, reads: dict[str, bool] | None = None, **fields: Any
) -> releasing.ReleasingView:
    values: dict[str, Any] = {"state": State.RELEASING, "outcome": Outcome.COMPLETED, "reason": Reason.FINISHED}
    before = job(**{**values, **fields.pop("job", {})})
    evidence = Evidence(listing=found or listing(), single_reads=reads or {}, create_limit_seconds=LIMIT)
    fields.setdefault("costs", ())
    return releasing.ReleasingView(
        visit=visit(before, now=fields.pop("now", 100.0)),
        installation=INSTALLATION,
        rentals=held,
        evidence=fields.pop("evidence", evidence),
        **fields,
    )


def after(step: Step[Any]) -> Job:
    assert step.write is not None
    return step.write.job


def test_a_job_ends_when_every_rental_is_gone_and_not_before() -> None:
    waiting = releasing.decide(seen(rental(absent_listings=1), reads={"m1": True}), POLICY)
    assert after(waiting).state is State.RELEASING
    gone = releasing.decide(seen(rental(absent_listings=1), reads={"m1": False}), POLICY)
    assert after(gone).state is State.RELEASING, "that it is gone is written before the end, for everybody to see"
    assert gone.write is not None
    assert [each.state for each in gone.write.rentals] == [RentalState.GONE]
    assert gone.write.due_in == 0.0
    done = releasing.decide(seen(*gone.write.rentals, reads={"m1": False}), POLICY)
    assert after(done).state is State.ENDED
    assert done.write is not None
    assert done.write.due_in is None


def test_a_provider_that_cannot_be_asked_ends_nothing_and_is_told_after_a_while() -> None:
    for waited, alerts in ((10.0, []), (601.0, ["release"])):
        blind = seen(rental(absent_listings=5), evidence=None, problem="503", now=waited)
        step = releasing.decide(blind, POLICY)
        assert after(step).state is State.RELEASING
        assert step.write is not None
        assert [alert.kind for alert in step.write.alerts] == alerts
        assert step.write.due_in


def test_a_machine_that_refuses_to_go_is_destroyed_again_for_ever_and_loudly() -> None:
    step = releasing.decide(seen(rental(), found=listing(machine()), now=1e6), POLICY)
    assert step.then == releasing.Destroy(provider_ids=("m1",))
    assert step.write is not None
    assert [alert.kind for alert in step.write.alerts] == ["release"]
    assert [each.release_asked_at for each in step.write.rentals] == [1e6]


def test_a_machine_of_the_job_that_no_row_names_gets_one_and_goes() -> None:
    found = listing(machine("m1"), machine("m9"), machine("x", label="web"), machine("y", label=label("job-2")))
    step = releasing.decide(seen(rental(), found=found), POLICY)
    assert step.then == releasing.Destroy(provider_ids=("m1", "m9"))
    assert step.write is not None
    (surplus,) = [each for each in step.write.rentals if each.surplus]
    assert (surplus.provider_id, surplus.label) == ("m9", f"{label()}#m9")
    assert f"{label()}#m9" in {line.rental_label for line in step.write.costs}


def test_a_machine_of_the_job_is_found_even_if_no_row_is_left() -> None:
    """As after a store was restored from a backup."""
    step = releasing.decide(seen(found=listing(machine("m9"))), POLICY)
    assert step.then == releasing.Destroy(provider_ids=("m9",))
    assert after(step).state is State.RELEASING


def test_a_machine_whose_create_was_never_answered_is_in_the_cost_lines_before_it_goes() -> None:
    asked = requested(create_sent_at=80.0, account=ACCOUNT, offer=offer())
    step = releasing.decide(seen(asked, found=listing(machine("m4"))), POLICY)
    assert step.then == releasing.Destroy(provider_ids=("m4",))
    assert step.write is not None
    assert [(line.rental_label, line.started_at) for line in step.write.costs] == [(label(), 80.0)]


def test_a_cost_line_is_closed_when_the_machine_is_gone_and_only_then() -> None:
    line = opened_cost(rental(), machine(), now=20.0)
    open_still = releasing.decide(seen(rental(), found=listing(machine()), costs=(line,)), POLICY)
    assert open_still.write is not None
    assert open_still.write.costs == ()
    closed = releasing.decide(seen(rental(absent_listings=1), reads={"m1": False}, costs=(line,), now=3610.0), POLICY)
    assert closed.write is not None
    (ended,) = closed.write.costs
    assert (ended.ended_at, ended.amount) == (3610.0, 360_000)


def test_a_further_attempt_begins_with_a_new_number_and_nothing_of_the_last_machine() -> None:
    saved = SavedModel(address="/m", step=5, attempt=1)
    known = {
        "machine": replace(MACHINE, absences=1), "watching": Watching(since={}, milestone=25), "model": saved,
        "setbacks": Setbacks(failures=2), "ending": Ending(further=Reason.MACHINE_LOST),
    }  # fmt: skip
    before = {"outcome": None, "reason": None, "failed_after_login": 1, "unreachable_since": 5.0, **known}
    step = releasing.decide(seen(job=before), POLICY)
    again = after(step)
    assert (again.state, again.attempt, again.outcome) == (State.PROVISIONING, 2, None)
    assert attempt_to_json(again) == attempt_to_json(job(model=saved, watching=Watching(milestone=25)))
    assert again.unreachable_since is None
    assert step.write is not None
    assert step.write.due_in == 5.0


class Stubborn:
    """A provider of which one machine cannot be destroyed."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def destroy(self, provider_id: str) -> None:
        from stationmaster.errors import ProviderFault

        self.asked.append(provider_id)
        if provider_id == "m1":
            raise ProviderFault("cannot be destroyed")


class World:
    """As much of a world as a release needs."""

    def __init__(self) -> None:
        self.stubborn = Stubborn()
        self.policy = POLICY

    def provider(self, _name: str) -> Stubborn:
        return self.stubborn

    async def forget_remote(self, _label: str) -> None:
        pass


@asynchronous
async def test_one_machine_that_cannot_be_destroyed_does_not_keep_the_others_alive() -> None:
    world = World()
    look = seen(rental(), found=listing(machine()))
    action = releasing.Destroy(provider_ids=("m1", "m2", "m3"))
    write = await releasing.perform(action, look.visit.job, look, world)  # type: ignore[arg-type]
    assert world.stubborn.asked == ["m1", "m2", "m3"]
    assert [told.kind for told in write.events] == ["destroy_failed"]
    assert write.due_in


@pytest.mark.parametrize("waited", [0.0, 599.0])
def test_a_release_that_takes_its_usual_time_alarms_nobody(waited: float) -> None:
    step = releasing.decide(seen(rental(), found=listing(machine()), now=waited), POLICY)
    assert step.write is not None
    assert step.write.alerts == ()
