"""PROVISIONING: an attempt with a unique label exists, and the provider may be billing.

Each visit looks for the label before it asks for anything: found, adopt the newest machine and release the others;
absent, and the create was never sent or cleanly refused, create; unanswered, wait out the provider's time limit, look
again in full, and only then repeat on the same offer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.control.flow.listings import labelled, shows_absence
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step, failed_try, give_up, is_late, recovered, wait, wants_out
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.adoption import Discard, adopted, discard, with_surplus
from stationmaster.control.machine.login import LogIn, blame, log_in, with_login_problem
from stationmaster.control.machine.step_secrets import refusal_in_words, sendable_secrets
from stationmaster.control.states.provisioning.agreed_price import (
    agreed_in_words,
    credit_problem,
    is_full,
    within_agreed,
)
from stationmaster.durations import format_duration
from stationmaster.errors import (
    AccessRefused,
    AnswerLost,
    DeliveryBusy,
    NoCapacity,
    ProviderBusy,
    ProviderError,
    SecretRefused,
)
from stationmaster.model import (
    LIVE_RENTAL_STATES,
    Alert,
    Job,
    Label,
    Listing,
    Machine,
    MachineStatus,
    Offer,
    Reason,
    Rental,
    RentalState,
    Requirements,
)
from stationmaster.money import format_dollars
from stationmaster.recipes.schema import Recipe
from stationmaster.store.writes import NewEvent, Write

_USELESS = (MachineStatus.FAILED, MachineStatus.STOPPED, MachineStatus.OFFLINE)
_REFUSALS = 3  # of the last offer that is left
_MOST_REFUSALS = 10
_ABSENCES = 2  # complete listings in a row without a machine before it counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    visit: Visit
    installation: str
    create_limit_seconds: float
    rental: Rental | None = None
    was_ended: bool = False  # this attempt's machine was ended by somebody else: the sweep
    surplus: frozenset[str] = frozenset()  # machines that are written down as such
    listing: Listing | None = None
    offers: tuple[Offer, ...] = ()  # within what the person agreed to
    others: tuple[Offer, ...] = ()  # that would do, but cost more than was agreed to, or are slower
    no_credit: str | None = None  # why the provider's credit does not suffice
    secret_problem: SecretRefused | DeliveryBusy | None = None  # why a secret that the recipe needs would not be sent
    waits_for_room: bool = False  # as many machines are rented there as may be
    asked_at: float | None = None  # when a create was about to be sent: a look at the market may take long
    problem: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Ask the provider for the machine; the intent and the time of asking are written already."""

    rental: Rental
    offer: Offer


async def observe(visit: Visit, world: World) -> Seen:
    provider = world.provider(visit.job.spec.provider)
    rentals = await world.rentals.of(visit.job.id)
    rental = next((each for each in rentals if each.state in LIVE_RENTAL_STATES), None)
    seen = Seen(
        visit=visit,
        installation=world.store.installation_id,
        create_limit_seconds=provider.create_limit_seconds,
        rental=rental,
        was_ended=any(each.attempt == visit.job.attempt and not each.surplus for each in rentals) and rental is None,
        surplus=frozenset(each.provider_id for each in rentals if each.surplus and each.provider_id),
    )
    if rental is None:
        return seen
    try:
        listing = await world.listings.of(provider.name)
        seen = replace(seen, listing=listing)
        if _may_be_created(seen, _not_surplus(seen, rental)):
            seen = await _look_at_the_market(seen, rental, world)
            seen = replace(seen, asked_at=await world.now())
    except ProviderError as problem:
        seen = replace(seen, problem=problem)
    return seen


async def _look_at_the_market(seen: Seen, rental: Rental, world: World) -> Seen:
    job, provider = seen.visit.job, world.provider(rental.provider)
    if await is_full(rental, world):
        return replace(seen, waits_for_room=True)
    if rental.offer is not None:
        return seen
    try:
        await sendable_secrets(job, seen.visit.recipe, world)
    except (SecretRefused, DeliveryBusy) as problem:
        return replace(seen, secret_problem=problem)
    avoided = await world.avoided.of(provider.name)
    want = replace(requirements(job, seen.visit.recipe), avoided_machines=avoided)
    market = await provider.offers(want)
    agreed = within_agreed(market, job.spec)
    others = tuple(offer for offer in market if offer not in agreed)
    no_credit = await credit_problem(job.spec.quote, provider)
    return replace(seen, offers=tuple(agreed), others=others, no_credit=no_credit)


def decide(seen: Seen, policy: Policy) -> Step[Create | LogIn | Discard]:
    job, now, rental = seen.visit.job, seen.visit.now, seen.rental
    if wants_out(job):
        return Step(write=_given_up(seen, Reason.CANCELLED_BY_USER, "cancelled while a machine was sought"))
    if is_late(job, now=now):
        return Step(write=_given_up(seen, Reason.HARD_LIMIT, "the limit was reached before a machine was ready"))
    if seen.was_ended:  # one attempt is one rental: what is written of that machine stays
        said = "the safety net ended the machine before it was ready"
        return Step(write=_given_up(seen, Reason.MACHINE_NOT_READY, said))
    if rental is None:
        return Step(write=_intent(seen))
    if isinstance(seen.problem, AccessRefused):
        return Step(write=_given_up(seen, Reason.ACCESS_REFUSED, str(seen.problem)))
    if now - job.state_since > policy.ready_seconds:
        return Step(write=_out_of_time(seen, rental, policy))
    if seen.listing is None or seen.problem is not None:  # a market that did not answer is not an empty one
        after, seconds, _ = failed_try(job, policy)
        return Step(write=wait(after, seconds, alerts=_slow(seen, policy)))
    machines = _not_surplus(seen, rental)
    if rental.state is RentalState.REQUESTED:
        return _ask_or_adopt(seen, rental, machines, policy)
    return _until_reachable(seen, rental, machines, policy)


def _intent(seen: Seen) -> Write:
    """First of all the rental is written down: a machine that we forget can only be one that we never asked for."""
    job = seen.visit.job
    label = str(Label(installation=seen.installation, job=job.id, attempt=job.attempt))
    rental = Rental(
        label=label,
        job_id=job.id,
        attempt=job.attempt,
        provider=job.spec.provider,
        state=RentalState.REQUESTED,
        requested_at=seen.visit.now,
    )
    return Write(job=job, rentals=(rental,), events=(NewEvent(kind="rental_requested", payload={"label": label}),))


def _ask_or_adopt(
    seen: Seen, rental: Rental, machines: list[Machine], policy: Policy
) -> Step[Create | LogIn | Discard]:
    assert seen.listing is not None
    job, now = seen.visit.job, seen.visit.now
    if machines:
        write = adopted(job, rental, machines, seen.listing, now=now)
        return Step(write=write, then=_discarding(machines[1:]) if machines[1:] else None)
    if not _may_be_created(seen, machines):
        due = _create_limit_over(seen, rental) - now
        return Step(write=wait(job, max(due, policy.provider_look_seconds), alerts=_slow(seen, policy)))
    if seen.waits_for_room:
        return Step(write=wait(replace(job, state_since=now), policy.room_look_seconds))
    if isinstance(seen.secret_problem, SecretRefused):  # before anything is rented that could not be used
        return Step(write=_given_up(seen, Reason.ACCESS_REFUSED, refusal_in_words(seen.secret_problem)))
    if seen.secret_problem is not None:
        after, seconds, _ = failed_try(with_login_problem(job, str(seen.secret_problem)), policy)
        return Step(write=wait(after, seconds, alerts=_slow(seen, policy)))
    if seen.no_credit:
        return Step(write=_given_up(seen, Reason.NO_PROVIDER_CREDIT, seen.no_credit))
    offer = rental.offer or _best_offer(seen)
    if offer is None:
        return Step(write=_wait_for_an_offer(seen, policy))
    asked = replace(rental, create_sent_at=seen.asked_at or now, offer=offer, account=seen.listing.account)
    return Step(write=Write(job=job, rentals=(asked,)), then=Create(rental=asked, offer=offer))


def _wait_for_an_offer(seen: Seen, policy: Policy) -> Write:
    """Wait rather than rent above the agreed price: the market may have a fitting offer in a minute."""
    after, seconds, failures = failed_try(seen.visit.job, policy)
    event = NewEvent(
        kind="waiting_for_offer", payload={"agreed": agreed_in_words(after.spec), "offered": _next_best(seen)}
    )
    return wait(after, seconds, events=() if failures else (event,), alerts=_slow(seen, policy))


def _out_of_time(seen: Seen, rental: Rental, policy: Policy) -> Write:
    job, waited = seen.visit.job, format_duration(policy.ready_seconds)
    looked = seen.problem is None and seen.listing is not None and _may_be_created(seen, _not_surplus(seen, rental))
    if looked and rental.offer is None and not seen.offers and not seen.waits_for_room and seen.secret_problem is None:
        said = (
            f"{job.spec.provider} offered nothing within what was agreed to ({agreed_in_words(job.spec)}) for {waited}"
        )
        if best := _next_best(seen):
            said = f"{said}; it has {best}"
        return _given_up(seen, Reason.NO_OFFER, said)
    said = f"no machine could be logged in to within {waited}"
    if why := job.machine.login_problem:
        said = f"{said}: {why}"
    return _given_up(seen, Reason.MACHINE_NOT_READY, said)


def _next_best(seen: Seen) -> str | None:
    """The best offer that would do but was not agreed to, in words."""
    if not seen.others:
        return None
    best = seen.others[0]
    return f"{best.gpu or 'a machine without a GPU'} at {format_dollars(best.price_per_hour, 3)} per hour"


def _best_offer(seen: Seen) -> Offer | None:
    """The best that was not refused in this attempt; else the best of all: what was taken may be free again."""
    refused = seen.visit.job.machine.refused_offers
    return next((offer for offer in seen.offers if offer.id not in refused), next(iter(seen.offers), None))


def _may_be_created(seen: Seen, machines: list[Machine]) -> bool:
    """Nothing of ours is there, and no earlier create can still come true."""
    rental, listing = seen.rental, seen.listing
    if rental is None or listing is None or rental.state is not RentalState.REQUESTED or machines:
        return False
    if not shows_absence(listing, account=rental.account if rental.create_sent_at is not None else None):
        return False
    return rental.create_sent_at is None or seen.visit.now > _create_limit_over(seen, rental)


def _create_limit_over(seen: Seen, rental: Rental) -> float:
    return (rental.create_sent_at or 0.0) + seen.create_limit_seconds


def _not_surplus(seen: Seen, rental: Rental) -> list[Machine]:
    """Machines with the label, newest first, except those that are on their way out already."""
    assert seen.listing is not None
    return [each for each in labelled(seen.listing, rental.label) if each.provider_id not in seen.surplus]


def _discarding(machines: list[Machine]) -> Discard:
    return Discard(provider_ids=tuple(machine.provider_id for machine in machines))


def _until_reachable(
    seen: Seen, rental: Rental, machines: list[Machine], policy: Policy
) -> Step[Create | LogIn | Discard]:
    assert seen.listing is not None
    job = seen.visit.job
    machine = next((each for each in machines if each.provider_id == rental.provider_id), None)
    if machine is None:
        return Step(write=_missing(seen, rental, policy))
    extra = [each for each in machines if each is not machine]
    if extra:
        return Step(write=with_surplus(job, rental, extra, now=seen.visit.now), then=_discarding(extra))
    if rental.absent_listings:  # it is there after all: only looks in a row count
        return Step(write=wait(job, 0.0, rentals=(replace(rental, absent_listings=0),)))
    if machine.status in _USELESS:  # nothing is on it yet: another one is sooner ready than this one is back
        said = machine.message or f"the provider says that the machine is {machine.status.value.lower()}"
        return Step(write=_given_up(seen, Reason.MACHINE_NOT_READY, said))
    if machine.status is not MachineStatus.RUNNING or not machine.accesses:
        return Step(write=wait(job, policy.provider_look_seconds, alerts=_slow(seen, policy)))
    return Step(then=LogIn(rental=rental, machine=machine))


def _missing(seen: Seen, rental: Rental, policy: Policy) -> Write:
    assert seen.listing is not None
    if not shows_absence(seen.listing, account=rental.account):
        return wait(seen.visit.job, policy.provider_look_seconds, alerts=_slow(seen, policy))
    counted = replace(rental, absent_listings=rental.absent_listings + 1)
    if counted.absent_listings < _ABSENCES:
        return wait(seen.visit.job, policy.provider_look_seconds, rentals=(counted,))
    return _given_up(seen, Reason.MACHINE_NOT_READY, "the machine vanished before it could be used")


def _given_up(seen: Seen, reason: Reason, explanation: str) -> Write:
    write = give_up(seen.visit.job, reason, now=seen.visit.now, explanation=explanation)
    blamed = blame(seen.rental, explanation) if reason is Reason.MACHINE_NOT_READY else ()
    return replace(write, bad_machines=blamed)


def _slow(seen: Seen, policy: Policy) -> tuple[Alert, ...]:
    waited = seen.visit.now - seen.visit.job.state_since
    if waited < policy.monitoring.provisioning_alert:
        return ()
    return (
        Alert(
            kind="provisioning", job_id=seen.visit.job.id, message=f"no machine is ready after {waited / 60:.0f} min"
        ),
    )


async def perform(action: Create | LogIn | Discard, job: Job, seen: Seen, world: World) -> Write:
    if isinstance(action, Create):
        return await _create(action, job, seen, world)
    if isinstance(action, Discard):
        return await discard(action, job, world)
    return await log_in(action, job, seen.visit, world)


async def _create(action: Create, job: Job, seen: Seen, world: World) -> Write:
    provider = world.provider(job.spec.provider)
    want = requirements(job, seen.visit.recipe)
    unsent = replace(action.rental, create_sent_at=None, offer=None)
    seen.visit.guard.check()  # the last thing before sending: a process that slept here must not rent
    try:
        provider_id = await provider.create(action.offer, label=action.rental.label, want=want)
    except NoCapacity as problem:
        return replace(_refused(action, job, seen, world.policy, str(problem)), rentals=(unsent,))
    except ProviderBusy as problem:
        after, seconds, _ = failed_try(job, world.policy)
        return wait(after, max(seconds, problem.retry_after_seconds or 0.0), rentals=(unsent,))
    except AccessRefused as problem:
        return replace(_given_up(seen, Reason.ACCESS_REFUSED, str(problem)), rentals=(unsent,))
    except AnswerLost as problem:
        event = NewEvent(kind="create_unanswered", payload={"problem": str(problem)})
        return wait(job, provider.create_limit_seconds, events=(event,))
    except ProviderError as problem:  # any other refusal: nothing was rented, and asking again would not help
        return replace(_given_up(seen, Reason.NO_OFFER, str(problem)), rentals=(unsent,))
    machine = Machine(
        provider_id=provider_id,
        label=action.rental.label,
        status=MachineStatus.CREATING,
        created_at=0.0,
        machine_id=action.offer.machine_id,
        price_per_hour=action.offer.price_per_hour,
    )
    listing = Listing(machines=(machine,), complete=True, account=action.rental.account or "")
    return adopted(recovered(job), action.rental, [machine], listing, now=seen.visit.now)


def _refused(action: Create, job: Job, seen: Seen, policy: Policy, problem: str) -> Write:
    """Somebody else was quicker: the next best offer is asked for, and the attempt is lost only when there is none."""
    refused = (*job.machine.refused_offers, action.offer.id)
    others = any(offer.id not in refused for offer in seen.offers)
    if len(refused) >= (_MOST_REFUSALS if others else _REFUSALS):
        return _given_up(seen, Reason.NO_OFFER, problem)
    after, seconds, _ = failed_try(replace(job, machine=replace(job.machine, refused_offers=refused)), policy)
    event = NewEvent(kind="create_refused", payload={"problem": problem})
    return wait(after, policy.provider_look_seconds if others else seconds, events=(event,))


HANDLER = Handler(observe=observe, decide=decide, perform=perform)


def requirements(job: Job, recipe: Recipe) -> Requirements:
    """What an offer must have to run this job."""
    needs, quote = recipe.needs, job.spec.quote
    return Requirements(
        gpus=needs.gpus,
        vram_gib=needs.vram_gib,
        disk_gib=needs.disk_gib,
        cuda=needs.cuda,
        max_price_per_hour=job.spec.max_price_per_hour,
        hours=quote.hours_expected if quote.reference_hours is None else quote.reference_hours,
        fixed_hours=quote.fixed_hours,
        traffic_gib=quote.traffic_gib,
        image=recipe.image,
    )
