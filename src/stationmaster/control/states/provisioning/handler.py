"""PROVISIONING: an attempt with a unique label exists, and the provider may be billing.

Each visit looks for the label before it asks for anything. Found: adopt the newest machine and release the others.
Absent, and the create was never sent or was cleanly refused: create. Unanswered: wait for the provider's time limit,
list everything again, and only then repeat the create on the same offer.
"""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.flow.listings import labelled, shows_absence
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import (
    Handler,
    Step,
    failed_try,
    give_up,
    is_late,
    recovered,
    wait,
    wants_out_early,
)
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.adoption import Discard, adopted, discard, with_surplus
from stationmaster.control.machine.login import LogIn, blame, log_in, with_login_problem
from stationmaster.control.machine.step_secrets import refusal_in_words
from stationmaster.control.states.provisioning.market import Market, agreed_limits, look_at_market, requirements
from stationmaster.durations import format_duration
from stationmaster.errors import (
    AccessRefused,
    AnswerLost,
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
)
from stationmaster.model.copying import changed
from stationmaster.offers import NoOffer
from stationmaster.providers.base import CanRelabel, Provider
from stationmaster.store.writes import NewEvent, Write

_USELESS = (MachineStatus.FAILED, MachineStatus.STOPPED, MachineStatus.OFFLINE)
_REFUSALS = 3  # of the only offer left
_MOST_REFUSALS = 10
_LONGEST_MESSAGE = 200
_ABSENCES = 2  # complete listings in a row without a machine before it counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRental:
    """The attempt has no live rental: none was recorded yet, or it has ended."""

    visit: Visit
    installation: str
    was_ended: bool = False  # the sweep destroyed this attempt's machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """The provider could not be asked for its machines or its offers."""

    visit: Visit
    rental: Rental
    problem: ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The provider listed its machines. The market was looked at if a machine may be created now."""

    visit: Visit
    rental: Rental
    listing: Listing
    create_limit_seconds: float
    surplus: frozenset[str] = frozenset()  # machines recorded as surplus
    market: Market | None = None

    @property
    def machines(self) -> list[Machine]:
        """Machines with the label, newest first, without those that are being destroyed as surplus."""
        return [each for each in labelled(self.listing, self.rental.label) if each.provider_id not in self.surplus]

    @property
    def create_limit_over(self) -> float:
        """When an earlier create can no longer take effect."""
        return (self.rental.create_sent_at or 0.0) + self.create_limit_seconds

    @property
    def may_create(self) -> bool:
        """No machine of ours exists, and no earlier create can still take effect."""
        rental = self.rental
        if rental.state is not RentalState.REQUESTED or self.machines:
            return False
        if not shows_absence(self.listing, account=rental.account if rental.create_sent_at is not None else None):
            return False
        return rental.create_sent_at is None or self.visit.now > self.create_limit_over


ProvisioningView = NoRental | NoAnswer | Listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Ask the provider for the machine. The intent and the time of asking are already recorded."""

    rental: Rental
    offer: Offer


Action = Create | LogIn | Discard


async def observe(visit: Visit, world: World) -> ProvisioningView:
    provider = world.provider(visit.job.spec.provider)
    rentals = await world.rentals.of(visit.job.id)
    rental = next((each for each in rentals if each.state in LIVE_RENTAL_STATES), None)
    if rental is None:
        was_ended = any(each.attempt == visit.job.attempt and not each.surplus for each in rentals)
        return NoRental(visit=visit, installation=world.store.installation_id, was_ended=was_ended)
    try:
        listed = Listed(
            visit=visit,
            rental=rental,
            listing=await world.listings.of(provider.name),
            create_limit_seconds=provider.create_limit_seconds,
            surplus=frozenset(each.provider_id for each in rentals if each.surplus and each.provider_id),
        )
        if not listed.may_create:
            return listed
        market = await look_at_market(visit, rental, world)
        return changed(listed, market=changed(market, asked_at=await world.now()))
    except ProviderError as problem:
        return NoAnswer(visit=visit, rental=rental, problem=problem)


def decide(view: ProvisioningView, policy: Policy) -> Step[Action]:
    job, now = view.visit.job, view.visit.now
    if wants_out_early(job):
        return Step(write=_give_up(view, Reason.CANCELLED_BY_USER, "cancelled while looking for a machine"))
    if is_late(job, now=now):
        return Step(write=_give_up(view, Reason.HARD_LIMIT, "the limit was reached before a machine was ready"))
    if isinstance(view, NoRental):
        if view.was_ended:  # one attempt is one rental: the record of that machine stays
            explanation = "the sweep destroyed the machine before it was ready"
            return Step(write=_give_up(view, Reason.MACHINE_NOT_READY, explanation))
        return Step(write=_intent(view))
    if isinstance(view, NoAnswer) and isinstance(view.problem, AccessRefused):
        return Step(write=_give_up(view, Reason.ACCESS_REFUSED, str(view.problem)))
    if now - job.state_since > policy.limits.ready:
        return Step(write=_out_of_time(view, policy))
    if isinstance(view, NoAnswer):  # no answer does not mean that there are no offers
        after, seconds, _ = failed_try(job, policy)
        return Step(write=wait(after, seconds, alerts=_slow_alerts(view, policy)))
    if view.rental.state is RentalState.REQUESTED:
        return _ask_or_adopt(view, policy)
    return _until_reachable(view, policy)


def _intent(view: NoRental) -> Write:
    """Record the rental before anything else: so every machine that we ask for is known."""
    job = view.visit.job
    label = str(Label(installation=view.installation, job=job.id, attempt=job.attempt))
    rental = Rental(
        label=label,
        job_id=job.id,
        attempt=job.attempt,
        provider=job.spec.provider,
        state=RentalState.REQUESTED,
        requested_at=view.visit.now,
    )
    payload = {"label": label, "adopted": True} if job.spec.adopted is not None else {"label": label}
    return Write(job=job, rentals=(rental,), events=(NewEvent(kind="rental_requested", payload=payload),))


def _ask_or_adopt(view: Listed, policy: Policy) -> Step[Action]:
    job, now, machines = view.visit.job, view.visit.now, view.machines
    if machines:
        write = adopted(job, view.rental, machines, view.listing, now=now)
        return Step(write=write, then=_discarding(machines[1:]) if machines[1:] else None)
    market = _market(view)
    if market is None:
        due = view.create_limit_over - now
        return Step(write=wait(job, max(due, policy.provider_look_seconds), alerts=_slow_alerts(view, policy)))
    if market.not_takeable is not None:
        return Step(write=_give_up(view, Reason.NO_OFFER, market.not_takeable))
    if market.waits_for is not None:
        return Step(write=_wait_for_its_turn(job, market.waits_for, now=now, policy=policy))
    job = _at_its_turn(job)
    if isinstance(market.secret_problem, SecretRefused):  # before anything is rented that could not be used
        return Step(write=_give_up(view, Reason.ACCESS_REFUSED, refusal_in_words(market.secret_problem)))
    if market.secret_problem is not None:
        after, seconds, _ = failed_try(with_login_problem(job, str(market.secret_problem)), policy)
        return Step(write=wait(after, seconds, alerts=_slow_alerts(view, policy)))
    if market.no_credit:
        return Step(write=_give_up(view, Reason.NO_PROVIDER_CREDIT, market.no_credit))
    offer = view.rental.offer or market.best_offer(job)
    if offer is None:
        return Step(write=_wait_for_an_offer(view, market, policy))
    asked = changed(view.rental, create_sent_at=market.asked_at, offer=offer, account=view.listing.account)
    events = _other_offer_events(job, market, offer) if view.rental.offer is None else ()
    return Step(write=Write(job=job, rentals=(asked,), events=events), then=Create(rental=asked, offer=offer))


def _other_offer_events(job: Job, market: Market, offer: Offer) -> tuple[NewEvent, ...]:
    """Tells that the machine is another one than the confirmed, which is still within the confirmed limits."""
    why = market.instead_of_confirmed(job, offer)
    if why is None:
        return ()
    payload = {
        "confirmed": job.spec.quote.offer,
        "why": why,
        "offer": offer.id,
        "gpu": offer.gpus_text,
        "price_per_hour_usd": offer.price_per_hour / 1_000_000,
        "agreed": agreed_limits(job.spec),
    }
    return (NewEvent(kind="other_offer", payload=payload),)


def _market(view: ProvisioningView) -> Market | None:
    return view.market if isinstance(view, Listed) and view.may_create else None


def _wait_for_its_turn(job: Job, reason: str, *, now: float, policy: Policy) -> Write:
    """Wait for as long as it takes: other jobs use what it needs."""
    waiting = changed(job, state_since=now, machine=changed(job.machine, waits_for=reason))
    event = NewEvent(kind="waiting_for_turn", payload={"reason": reason})
    return wait(waiting, policy.room_look_seconds, events=() if job.machine.waits_for == reason else (event,))


def _at_its_turn(job: Job) -> Job:
    return changed(job, machine=changed(job.machine, waits_for=None))


def _wait_for_an_offer(view: Listed, market: Market, policy: Policy) -> Write:
    """Wait rather than rent above the agreed price: a matching offer may appear within a minute."""
    after, seconds, failures = failed_try(_at_its_turn(view.visit.job), policy)
    none = market.no_offer or NoOffer(reasons=())
    event = NewEvent(
        kind="waiting_for_offer",
        payload={
            "agreed": agreed_limits(after.spec),
            "offered": market.next_best,
            "reasons": list(none.reasons),
            "remedies": list(none.remedies),
        },
    )
    return wait(after, seconds, events=() if failures else (event,), alerts=_slow_alerts(view, policy))


def _out_of_time(view: NoAnswer | Listed, policy: Policy) -> Write:
    job, waited = view.visit.job, format_duration(policy.limits.ready)
    market = _market(view)
    if market is not None and view.rental.offer is None and market.has_no_offer:
        agreed = agreed_limits(job.spec)
        explanation = f"{job.spec.provider} had no offer within the agreed limits ({agreed}) for {waited}"
        if best := market.next_best:
            explanation = f"{explanation}; its best other offer is {best}"
        if none := market.no_offer:
            explanation = f"{explanation}. Left out: {none.why}. What helps: {none.what_helps}"
        return _give_up(view, Reason.NO_OFFER, explanation)
    explanation = f"no machine was ready for login within {waited}"
    if problem := job.machine.login_problem:
        explanation = f"{explanation}: {problem}"
    return _give_up(view, Reason.MACHINE_NOT_READY, explanation)


def _discarding(machines: list[Machine]) -> Discard:
    return Discard(provider_ids=tuple(machine.provider_id for machine in machines))


def _until_reachable(view: Listed, policy: Policy) -> Step[Action]:
    job, rental, machines = view.visit.job, view.rental, view.machines
    machine = next((each for each in machines if each.provider_id == rental.provider_id), None)
    if machine is None:
        return Step(write=_missing(view, policy))
    extra = [each for each in machines if each is not machine]
    if extra:
        return Step(write=with_surplus(job, rental, extra, now=view.visit.now), then=_discarding(extra))
    if rental.absent_listings:  # it is there after all: only absences in a row count
        return Step(write=wait(job, 0.0, rentals=(changed(rental, absent_listings=0),)))
    if machine.status in _USELESS:  # it holds no data yet: another machine is ready sooner than this one is back
        explanation = machine.message or f"the provider reports that the machine is {machine.status.value.lower()}"
        return Step(write=_give_up(view, Reason.MACHINE_NOT_READY, explanation))
    if machine.status is not MachineStatus.RUNNING or not machine.accesses:
        job = _starting(job, machine)
        return Step(write=wait(job, policy.provider_look_seconds, alerts=_slow_alerts(view, policy)))
    return Step(then=LogIn(rental=rental, machine=machine))


def _starting(job: Job, machine: Machine) -> Job:
    """The job with what the provider reports of its machine, for who watches."""
    message = (machine.message or "")[:_LONGEST_MESSAGE] or None
    if message == job.machine.starting:
        return job
    return changed(job, machine=changed(job.machine, starting=message))


def _missing(view: Listed, policy: Policy) -> Write:
    rental = view.rental
    if not shows_absence(view.listing, account=rental.account):
        return wait(view.visit.job, policy.provider_look_seconds, alerts=_slow_alerts(view, policy))
    counted = changed(rental, absent_listings=rental.absent_listings + 1)
    if counted.absent_listings < _ABSENCES:
        return wait(view.visit.job, policy.provider_look_seconds, rentals=(counted,))
    return _give_up(view, Reason.MACHINE_NOT_READY, "the machine vanished before it could be used")


def _give_up(view: ProvisioningView, reason: Reason, explanation: str) -> Write:
    write = give_up(view.visit.job, reason, now=view.visit.now, explanation=explanation)
    blamed = (
        blame(None if isinstance(view, NoRental) else view.rental, explanation)
        if reason is Reason.MACHINE_NOT_READY
        else ()
    )
    return changed(write, bad_machines=blamed)


def _slow_alerts(view: ProvisioningView, policy: Policy) -> tuple[Alert, ...]:
    waited = view.visit.now - view.visit.job.state_since
    if waited < policy.monitoring.provisioning_alert:
        return ()
    return (
        Alert(
            kind="provisioning", job_id=view.visit.job.id, message=f"no machine is ready after {waited / 60:.0f} min"
        ),
    )


async def perform(action: Action, job: Job, view: ProvisioningView, world: World) -> Write:
    match action:
        case Create():
            return await _create(action, job, view, world)
        case Discard():
            return await discard(action, job, world)
        case LogIn():
            return await log_in(action, job, view.visit, world)


async def _create(action: Create, job: Job, view: ProvisioningView, world: World) -> Write:
    provider = world.provider(job.spec.provider)
    want = requirements(job, view.visit.recipe)
    unsent = changed(action.rental, create_sent_at=None, offer=None)
    view.visit.guard.check()  # the last check before sending: a process that was suspended here must not rent
    try:
        if job.spec.adopted is not None and job.spec.adopted.release:
            provider_id = await _take_over(provider, action)
        else:
            provider_id = await provider.create(action.offer, label=action.rental.label, want=want)
    except NoCapacity as problem:
        return changed(_offer_refused(action, job, view, world.policy, str(problem)), rentals=(unsent,))
    except ProviderBusy as problem:
        after, seconds, _ = failed_try(job, world.policy)
        return wait(after, max(seconds, problem.retry_after_seconds or 0.0), rentals=(unsent,))
    except AccessRefused as problem:
        return changed(_give_up(view, Reason.ACCESS_REFUSED, str(problem)), rentals=(unsent,))
    except AnswerLost as problem:
        event = NewEvent(kind="create_unanswered", payload={"problem": str(problem)})
        return wait(job, provider.create_limit_seconds, events=(event,))
    except ProviderError as problem:  # any other refusal: nothing was rented, and a retry would not help
        return changed(_give_up(view, Reason.NO_OFFER, str(problem)), rentals=(unsent,))
    machine = Machine(
        provider_id=provider_id,
        label=action.rental.label,
        status=MachineStatus.CREATING,
        created_at=0.0,
        machine_id=action.offer.machine_id,
        price_per_hour=action.offer.price_per_hour,
    )
    listing = Listing(machines=(machine,), complete=True, account=action.rental.account or "")
    # Not the visit's time: what this machine got, such as a GPU, may have become free since the visit began.
    return adopted(recovered(job), action.rental, [machine], listing, now=await world.now())


async def _take_over(provider: Provider, action: Create) -> str:
    """Label the machine of an adopted training as the job's: from then on it is found, and destroyed, like any other.

    Repeating it changes nothing.
    """
    assert isinstance(provider, CanRelabel), "checked before the job was made"
    await provider.relabel(action.offer.id, action.rental.label)
    return action.offer.id


def _offer_refused(action: Create, job: Job, view: ProvisioningView, policy: Policy, problem: str) -> Write:
    """Another customer was quicker: try the next best offer; the attempt is lost only when there is none."""
    refused = (*job.machine.refused_offers, action.offer.id)
    market = _market(view)
    others = market is not None and any(offer.id not in refused for offer in market.offers)
    if len(refused) >= (_MOST_REFUSALS if others else _REFUSALS):
        return _give_up(view, Reason.NO_OFFER, problem)
    after, seconds, _ = failed_try(changed(job, machine=changed(job.machine, refused_offers=refused)), policy)
    event = NewEvent(kind="create_refused", payload={"problem": problem})
    return wait(after, policy.provider_look_seconds if others else seconds, events=(event,))


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
