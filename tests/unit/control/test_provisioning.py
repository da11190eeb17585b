"""PROVISIONING: intent first, one machine per job, and no rent beyond what was allowed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Step
from stationmaster.control.flow.world import World
from stationmaster.control.machine.login import LogIn
from stationmaster.control.states.provisioning.handler import (
    Create,
    Listed,
    NoAnswer,
    NoRental,
    decide,
    perform,
)
from stationmaster.control.states.provisioning.market import Market, not_agreed, within_agreed
from stationmaster.errors import AccessRefused, DeliveryBusy, ProviderBusy, SecretRefused
from stationmaster.event_sentences import sentence
from stationmaster.model import Job, Listing, MachineStatus, Outcome, Reason, Rental, RentalState, RentedMachine, State
from stationmaster.money import ZERO, MicroDollars
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import (
    ACCOUNT,
    INSTALLATION,
    job,
    label,
    listing,
    machine,
    offer,
    rental,
    requested,
    spec,
    visit,
)

POLICY = Policy()
NOW = 100.0


def seen(
    held: Rental | None, found: Listing | None = None, *, now: float = NOW, **fields: Any
) -> NoRental | NoAnswer | Listed:
    looked = visit(fields.pop("job", job(state=State.PROVISIONING, state_since=90.0)), now=now)
    if held is None:
        was_ended = fields.pop("was_ended", False)
        return NoRental(visit=looked, installation=INSTALLATION, was_ended=was_ended)
    if found is None:
        return NoAnswer(visit=looked, rental=held, **fields)
    market = Market(asked_at=now, **fields)
    return Listed(visit=looked, rental=held, listing=found, create_limit_seconds=30.0, market=market)


def world_with(provider: FakeProvider, store: Store, folder: Path) -> World:
    return World(
        store=store,
        providers={"fake": provider},
        connect=nobody,
        find_recipe=lambda _: find("tiny-lora@1"),
        secrets=nobody,
        home=folder,
        trackside=folder,
    )


def nobody(*_: object) -> Any:
    raise AssertionError("nobody is asked here")


def after(step: Step[Any]) -> Job:
    assert step.write is not None
    return step.write.job


def test_the_intent_is_written_before_anything_is_asked_of_the_provider() -> None:
    step = decide(seen(None), POLICY)
    assert step.then is None
    assert step.write is not None
    (written,) = step.write.rentals
    assert (written.state, written.label, written.create_sent_at) == (RentalState.REQUESTED, label(), None)
    assert step.write.due_in == 0.0


def test_an_attempt_whose_machine_the_sweep_ended_is_over_and_its_rental_is_not_written_over() -> None:
    step = decide(seen(None, was_ended=True), POLICY)
    assert step.write is not None
    assert step.write.rentals == ()
    assert (after(step).state, after(step).ending.further) == (State.RELEASING, Reason.MACHINE_NOT_READY)


def test_each_attempt_has_its_own_label() -> None:
    step = decide(seen(None, job=job(state=State.PROVISIONING, attempt=2)), POLICY)
    assert step.write is not None
    assert step.write.rentals[0].label == label(attempt=2)


def test_the_time_of_asking_is_written_before_the_request_is_sent() -> None:
    step = decide(seen(requested(), listing(), offers=(offer(),)), POLICY)
    assert isinstance(step.then, Create)
    assert step.write is not None
    assert step.write.rentals == (step.then.rental,)
    assert step.then.rental.create_sent_at == NOW
    assert step.then.rental.account == ACCOUNT


@pytest.mark.parametrize(
    "doubtful", [listing(complete=False), listing(account="somebody-else"), listing(complete=False, account="x")]
)
def test_an_unanswered_create_is_not_repeated_on_a_doubtful_listing(doubtful: Listing) -> None:
    asked = requested(create_sent_at=10.0, account=ACCOUNT, offer=offer())
    step = decide(seen(asked, doubtful), POLICY)
    assert step.then is None
    assert after(step).state is State.PROVISIONING


def test_an_unanswered_create_is_waited_out_and_then_repeated_on_the_same_offer() -> None:
    asked = requested(create_sent_at=80.0, account=ACCOUNT, offer=offer(id="mine"))
    early = decide(seen(asked, listing(), offers=(offer(),)), POLICY)
    assert early.then is None
    assert early.write is not None
    assert early.write.due_in == pytest.approx(10.0)
    late = decide(seen(asked, listing(), now=111.0, offers=(offer(),)), POLICY)
    assert isinstance(late.then, Create)
    assert late.then.offer.id == "mine"


def test_a_machine_with_our_label_is_adopted_instead_of_a_second_one() -> None:
    asked = requested(create_sent_at=80.0, account=ACCOUNT, offer=offer())
    step = decide(seen(asked, listing(machine("m7")), offers=(offer(),)), POLICY)
    assert not isinstance(step.then, Create)
    assert step.write is not None
    (held,) = step.write.rentals
    assert (held.state, held.provider_id) == (RentalState.HELD, "m7")
    assert [line.started_at for line in step.write.costs] == [80.0]


@given(st.permutations([1.0, 2.0, 3.0]))
def test_of_several_machines_the_newest_is_held_and_all_others_go(ages: list[float]) -> None:
    machines = [machine(f"m{n}", created_at=age) for n, age in enumerate(ages)]
    asked = requested(create_sent_at=80.0, account=ACCOUNT, offer=offer())
    step = decide(seen(asked, listing(*machines)), POLICY)
    assert step.write is not None
    held, *others = step.write.rentals
    assert held.provider_id == f"m{ages.index(3.0)}"
    assert all(each.surplus and each.state is RentalState.RELEASING for each in others)
    assert {each.provider_id for each in step.write.rentals} == {"m0", "m1", "m2"}
    assert {line.rental_label for line in step.write.costs} == {each.label for each in step.write.rentals}


def test_machines_of_other_jobs_and_people_are_left_alone() -> None:
    strangers = (machine("a", label="web"), machine("b", label=label("job-1")), machine("c", label=label(attempt=2)))
    step = decide(seen(requested(), listing(*strangers), offers=(offer(),)), POLICY)
    assert isinstance(step.then, Create)


def test_a_running_machine_is_logged_in_to_before_it_counts() -> None:
    assert isinstance(decide(seen(rental(), listing(machine())), POLICY).then, LogIn)


@pytest.mark.parametrize("status", [MachineStatus.CREATING, MachineStatus.UNKNOWN])
def test_a_machine_that_is_not_running_yet_is_waited_for(status: MachineStatus) -> None:
    step = decide(seen(rental(), listing(machine(status=status))), POLICY)
    assert step.then is None
    assert (after(step).state, after(step).outcome) == (State.PROVISIONING, None)


def test_a_machine_that_failed_is_given_back_for_another() -> None:
    step = decide(seen(rental(), listing(machine(status=MachineStatus.FAILED))), POLICY)
    assert (after(step).state, after(step).outcome) == (State.RELEASING, None)
    assert after(step).failed_before_login == 1


def test_one_listing_without_the_machine_is_not_enough_to_leave_it() -> None:
    first = decide(seen(rental(), listing()), POLICY)
    assert after(first).state is State.PROVISIONING
    assert first.write is not None
    (counted,) = first.write.rentals
    assert counted.absent_listings == 1
    assert after(decide(seen(counted, listing()), POLICY)).state is State.RELEASING


def test_only_listings_in_a_row_lose_a_machine() -> None:
    step = decide(seen(rental(absent_listings=1), listing(machine())), POLICY)
    assert step.write is not None
    (found,) = step.write.rentals
    assert found.absent_listings == 0
    assert isinstance(decide(seen(found, listing(machine())), POLICY).then, LogIn)


@pytest.mark.parametrize(("others", "refusals"), [(0, 3), (6, 10)])
@asynchronous
async def test_an_attempt_outlives_refusals_while_there_are_other_offers(
    others: int, refusals: int, tmp_path: Path
) -> None:
    """As when several jobs want the same offer, and another one is always quicker."""
    looking = job(state=State.PROVISIONING, state_since=90.0)
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as store:
        world = world_with(FakeProvider(capacity=0), store, tmp_path)
        asked = 0
        while looking.state is State.PROVISIONING:
            market = tuple(offer(id=f"o{asked + n}") for n in range(others + 1))
            look = seen(requested(), listing(), offers=market, job=looking)
            step = decide(look, POLICY)
            assert isinstance(step.then, Create)
            looking = (await perform(step.then, looking, look, world)).job
            asked += 1
        await world.close()
    assert (asked, looking.ending.further) == (refusals, Reason.NO_OFFER)


@asynchronous
async def test_a_machine_is_held_from_its_creation_on_not_from_the_beginning_of_the_visit(tmp_path: Path) -> None:
    """Between the two the provider may have taken back from another job what this machine got."""
    look = seen(requested(), listing(), offers=(offer(),))
    step = decide(look, POLICY)
    assert isinstance(step.then, Create)
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as store:
        world = world_with(FakeProvider(), store, tmp_path)
        before_create = store.database.current_time()
        learnt = await perform(step.then, look.visit.job, look, world)
        await world.close()
    (held,) = learnt.rentals
    assert held.state is RentalState.HELD
    assert held.held_at is not None
    assert held.held_at >= before_create > look.visit.now


def test_an_offer_that_was_refused_comes_after_all_others() -> None:
    offers = (offer(id="taken"), offer(id="free"))
    before = job(state=State.PROVISIONING, state_since=90.0, machine=RentedMachine(refused_offers=("taken",)))
    step = decide(seen(requested(), listing(), offers=offers, job=before), POLICY)
    assert isinstance(step.then, Create)
    assert step.then.offer.id == "free"
    alone = decide(seen(requested(), listing(), offers=offers[:1], job=before), POLICY)
    assert isinstance(alone.then, Create)
    assert alone.then.offer.id == "taken", "it may be free again"


def test_a_job_waits_its_turn_without_a_time_limit_and_says_so_when_the_reason_changes() -> None:
    long_ago = job(state=State.PROVISIONING, state_since=90.0)
    first = decide(seen(requested(), listing(), waits_for="a GPU is in use", job=long_ago), POLICY)
    assert first.write is not None
    assert [event.payload for event in first.write.events] == [{"reason": "a GPU is in use"}]
    later = NOW + POLICY.limits.ready / 2
    again = decide(seen(requested(), listing(), waits_for="a GPU is in use", job=after(first), now=later), POLICY)
    assert again.write is not None
    assert (again.write.events, again.write.due_in) == ((), POLICY.room_look_seconds)
    assert after(again).state_since == later, "the time that it waits does not count"
    turn = decide(seen(requested(), listing(), offers=(offer(),), job=after(again), now=later), POLICY)
    assert isinstance(turn.then, Create)
    assert after(turn).machine.waits_for is None


def test_a_job_waits_for_an_offer_that_was_agreed_to_and_says_so_once() -> None:
    market = (offer(price_per_hour=MicroDollars(420_000), gpu="RTX 4090"),)
    first = decide(seen(requested(), listing(), others=market), POLICY)
    assert (after(first).state, first.then) == (State.PROVISIONING, None)
    assert first.write is not None
    assert first.write.due_in == POLICY.retry_seconds[0]
    (told,) = first.write.events
    assert (told.kind, told.payload["offered"]) == ("waiting_for_offer", "RTX 4090 at $0.420 per hour")
    again = decide(seen(requested(), listing(), others=market, job=after(first)), POLICY)
    assert again.write is not None
    assert (again.write.events, again.write.due_in) == ((), POLICY.retry_seconds[1])


def test_a_job_for_which_nothing_was_offered_that_was_agreed_to_ends_with_that_reason() -> None:
    last = job(state=State.PROVISIONING, state_since=90.0, attempt=3, failed_before_login=2, failed_after_login=0)
    market = (offer(price_per_hour=MicroDollars(420_000), gpu="RTX 4090"),)
    ended = after(decide(seen(requested(), listing(), others=market, job=last, now=90.0 + 901), POLICY))
    assert (ended.outcome, ended.reason) == (Outcome.FAILED_PROVISIONING, Reason.NO_OFFER)
    assert ended.explanation is not None
    assert "no offer within the agreed limits" in ended.explanation
    assert "its best other offer is RTX 4090 at $0.420 per hour" in ended.explanation


def test_why_there_is_no_offer_is_told_while_a_job_waits_and_when_it_gives_up() -> None:
    spec = replace(job().spec, quote=AGREED)
    dear = [offer(id=str(price), price_per_hour=MicroDollars(price), gpu="RTX 4090") for price in (420_000, 500_000)]
    slow = offer(id="slow", price_per_hour=MicroDollars(100_000), gpu="RTX 3090")
    none = not_agreed([*dear, slow], job(spec=spec))
    assert none.reasons == (
        "2 × above the $0.372 per hour that you agreed to (from $0.420 per hour)",
        "1 × slower than the RTX 4090 that you agreed to (from $0.100 per hour)",
    )
    assert f"stationmaster retry {spec.id}" in none.what_helps
    first = decide(seen(requested(), listing(), others=tuple(dear), no_offer=none), POLICY)
    assert first.write is not None
    (told,) = first.write.events
    said = sentence(told.kind, told.payload)
    assert "Left out: 2 × above the $0.372 per hour" in said
    assert "What helps: cancel the job" in said
    last = job(state=State.PROVISIONING, state_since=90.0, attempt=3, failed_before_login=2, failed_after_login=0)
    ended = after(decide(seen(requested(), listing(), no_offer=none, job=last, now=90.0 + 901), POLICY))
    assert "Left out: 2 × above the $0.372 per hour" in str(ended.explanation)
    assert "What helps: cancel the job" in str(ended.explanation)


AGREED = replace(job().spec.quote, price_per_hour=MicroDollars(310_000), gpu="RTX 4090")


@pytest.mark.parametrize(
    ("price", "gpu", "cap", "is_taken"),
    [
        (310_000, "RTX 4090", None, True),
        (200_000, "NVIDIA GeForce RTX 4090", None, True),
        (372_000, "RTX 4090", None, True),  # a fifth more: as was shown
        (372_001, "RTX 4090", None, False),
        (620_000, "RTX 4090", None, False),
        (310_000, "RTX 5090", None, True),
        (100_000, "RTX 3090", None, False),
        (310_000, "Voodoo 2", None, False),
        (310_000, None, None, False),
        (500_000, "RTX 4090", 500_000, True),
        (500_001, "RTX 4090", 500_000, False),
        (360_000, "RTX 4090", 350_000, False),  # what was asked for holds, below the usual room too
    ],
)
def test_an_offer_is_taken_only_within_the_price_and_the_gpu_that_were_agreed_to(
    price: int, gpu: str | None, cap: int | None, is_taken: bool
) -> None:
    most = None if cap is None else MicroDollars(cap)
    spec = replace(job().spec, quote=AGREED, max_price_per_hour=most)
    market = [offer(price_per_hour=MicroDollars(price), gpu=gpu)]
    assert bool(within_agreed(market, spec)) is is_taken


def test_what_costs_nothing_is_taken_on_any_machine() -> None:
    spec = replace(job().spec, quote=replace(AGREED, price_per_hour=ZERO))
    assert within_agreed([offer(gpu="T4")], spec)


@pytest.mark.parametrize("doubtful", [listing(complete=False), listing(account="somebody-else")])
def test_a_doubtful_listing_never_loses_a_machine(doubtful: Listing) -> None:
    step = decide(seen(rental(absent_listings=1), doubtful), POLICY)
    assert after(step).state is State.PROVISIONING
    assert step.write is not None
    assert step.write.rentals == ()


def test_a_busy_provider_is_asked_again_later_and_nothing_is_concluded() -> None:
    step = decide(seen(requested(), problem=ProviderBusy("too many requests")), POLICY)
    assert (after(step).state, step.then) == (State.PROVISIONING, None)
    assert step.write is not None
    assert step.write.due_in


def test_a_market_that_does_not_answer_is_not_an_empty_one() -> None:
    step = decide(seen(requested(), problem=ProviderBusy("nobody answers")), POLICY)
    assert step.then is None
    assert (after(step).state, after(step).setbacks.failures) == (State.PROVISIONING, 1)


def test_a_refused_key_ends_the_job_for_people_have_to_act() -> None:
    step = decide(seen(requested(), problem=AccessRefused("no")), POLICY)
    assert (after(step).outcome, after(step).reason) == (Outcome.FAILED_PROVISIONING, Reason.ACCESS_REFUSED)


def test_a_machine_that_never_comes_is_given_up_after_its_time_and_alerted_before() -> None:
    waiting = seen(rental(), listing(machine(status=MachineStatus.CREATING)), now=90.0 + 601)
    alerted = decide(waiting, POLICY)
    assert alerted.write is not None
    assert [alert.kind for alert in alerted.write.alerts] == ["provisioning"]
    given_up = decide(replace(waiting, visit=visit(waiting.visit.job, now=90.0 + 901)), POLICY)
    assert after(given_up).ending.further == Reason.MACHINE_NOT_READY


def test_the_third_attempt_that_fails_before_the_login_is_the_last() -> None:
    unlucky = job(state=State.PROVISIONING, state_since=90.0, attempt=3, failed_before_login=2, failed_after_login=0)
    step = decide(seen(requested(), listing(), job=unlucky, now=90.0 + 901), POLICY)
    assert (after(step).outcome, after(step).reason) == (Outcome.FAILED_PROVISIONING, Reason.NO_OFFER)


@pytest.mark.parametrize("held", [None, requested(), rental()])
def test_nothing_more_is_rented_once_the_limit_is_reached(held: Rental | None) -> None:
    """A further attempt keeps the first one's limit: it must not begin when that is over."""
    late = job(state=State.PROVISIONING, state_since=90.0, attempt=2, deadline_at=NOW)
    step = decide(seen(held, listing(), job=late, offers=(offer(),)), POLICY)
    assert step.then is None
    assert (after(step).state, after(step).reason) == (State.RELEASING, Reason.HARD_LIMIT)


def test_the_limit_counts_from_the_first_machine_in_hours_or_in_money() -> None:
    asked = requested(create_sent_at=80.0, account=ACCOUNT, offer=offer())
    rich = decide(seen(asked, listing(machine())), POLICY)
    assert after(rich).deadline_at == 80.0 + 14_400
    dear = decide(seen(asked, listing(machine(price_per_hour=1_440_000))), POLICY)
    assert after(dear).deadline_at == 80.0 + 3_600
    free = decide(seen(asked, listing(machine(price_per_hour=0))), POLICY)
    assert after(free).deadline_at == 80.0 + 14_400
    second = job(state=State.PROVISIONING, state_since=90.0, attempt=2, deadline_at=500.0)
    assert after(decide(seen(asked, listing(machine()), job=second), POLICY)).deadline_at == 500.0


def test_a_refusal_before_renting_ends_the_job_and_silence_is_waited_out() -> None:
    refusal = SecretRefused("HF_TOKEN may write", hint="set HF_READ_TOKEN")
    over = decide(seen(requested(), listing(), secret_problem=refusal), POLICY)
    assert over.write is not None
    assert (over.write.job.outcome, over.write.job.reason) == (Outcome.FAILED_PROVISIONING, Reason.ACCESS_REFUSED)
    assert over.write.job.explanation == "HF_TOKEN may write; hint: set HF_READ_TOKEN"
    waits = decide(seen(requested(), listing(), secret_problem=DeliveryBusy("503")), POLICY)
    assert waits.write is not None
    assert (waits.write.job.state, waits.then) == (State.PROVISIONING, None)
    assert (waits.write.due_in or 0) > 0


def confirmed(offer_id: str | None, **fields: Any) -> Job:
    """A job for which this offer was confirmed."""
    quoted = spec(quote=replace(spec().quote, offer=offer_id))
    return job(state=State.PROVISIONING, state_since=90.0, spec=quoted, **fields)


BETTER, CONFIRMED = offer(id="better", price_per_hour=MicroDollars(300_000)), offer(id="confirmed")


def test_the_offer_that_was_confirmed_is_rented_although_another_is_better_by_now() -> None:
    step = decide(seen(requested(), listing(), offers=(BETTER, CONFIRMED), job=confirmed("confirmed")), POLICY)
    assert isinstance(step.then, Create)
    assert step.then.offer == CONFIRMED
    assert step.write is not None
    assert step.write.events == ()


@pytest.mark.parametrize(
    ("others", "refused", "why"),
    [
        ((), (), "is no longer offered"),
        ((replace(CONFIRMED, price_per_hour=MicroDollars(900_000)),), (), "now costs $0.900 per hour"),
        ((), ("confirmed",), "was refused by the provider"),
    ],
)
def test_another_offer_within_the_agreement_is_taken_if_the_confirmed_one_is_gone_and_the_job_says_so(
    others: tuple[Any, ...], refused: tuple[str, ...], why: str
) -> None:
    asking = confirmed("confirmed")
    asking = replace(asking, machine=replace(asking.machine, refused_offers=refused))
    step = decide(seen(requested(), listing(), offers=(BETTER,), others=others, job=asking), POLICY)
    assert isinstance(step.then, Create)
    assert step.then.offer == BETTER
    assert step.write is not None
    (event,) = step.write.events
    told = sentence(event.kind, event.payload)
    assert told.startswith(f"The offer that you confirmed (confirmed) {why}, so another machine for $0.300/h is rented")
    assert "at most $0.432 per hour" in told


def test_a_further_attempt_and_a_further_refusal_do_not_repeat_that() -> None:
    again = confirmed("confirmed", attempt=2)
    refused = confirmed("confirmed")
    refused = replace(refused, machine=replace(refused.machine, refused_offers=("confirmed", "third")))
    for asking in (again, refused, confirmed(None)):
        held = requested(attempt=asking.attempt, label=label(attempt=asking.attempt))
        step = decide(seen(held, listing(), offers=(BETTER,), job=asking), POLICY)
        assert isinstance(step.then, Create)
        assert step.write is not None
        assert step.write.events == ()


def test_what_the_provider_reports_of_a_starting_machine_is_kept_for_who_watches() -> None:
    starting = machine(status=MachineStatus.CREATING, message="trainer:1: Pulling from maker/trainer " + "x" * 500)
    kept = after(decide(seen(rental(), listing(starting)), POLICY)).machine.starting
    assert kept is not None
    assert kept.startswith("trainer:1: Pulling from maker/trainer")
    assert len(kept) == 200
