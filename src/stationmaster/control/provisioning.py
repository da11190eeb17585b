"""PROVISIONING: an attempt with a unique label exists, and the provider may be billing.

Each visit looks for the label before it asks for anything: found, adopt the newest machine and release the others;
absent, and the create was never sent or cleanly refused, create; unanswered, wait out the provider's time limit, look
again in full, and only then repeat on the same offer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.control.fleet import labelled, shows_absence
from stationmaster.control.machine import access_to_json, live_rental, requirements
from stationmaster.control.step import Handler, Step, cut_off, failed_try, give_up, go_on, recovered, wait, wants_out
from stationmaster.control.world import Policy, Visit, World
from stationmaster.errors import (
    AccessRefused,
    AnswerLost,
    CommandFailed,
    HostKeyRefused,
    NoCapacity,
    ProviderBusy,
    ProviderError,
    Unreachable,
)
from stationmaster.lifecycle import Move
from stationmaster.model import (
    Access,
    Alert,
    CostLine,
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
from stationmaster.money import ZERO, cost
from stationmaster.remote.base import check
from stationmaster.store.writes import Told, Write

_LOGIN_SECONDS = 30.0
_ABSENCES = 2  # complete listings without a machine before it counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    visit: Visit
    installation: str
    create_limit_seconds: float
    rental: Rental | None = None
    listing: Listing | None = None
    offers: tuple[Offer, ...] = ()
    problem: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Ask the provider for the machine; the intent and the time of asking are written already."""

    rental: Rental
    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIn:
    """Running is not reachable: only a real login with a working Python counts."""

    access: Access


async def observe(visit: Visit, world: World) -> Seen:
    provider = world.provider(visit.job.spec.provider)
    rental = await live_rental(visit.job, world)
    seen = Seen(
        visit=visit,
        installation=world.store.installation_id,
        create_limit_seconds=provider.create_limit_seconds,
        rental=rental,
    )
    if rental is None:
        return seen
    try:
        listing = await world.fleet.listing(provider.name)
        seen = replace(seen, listing=listing)
        if _may_be_created(seen, labelled(listing, rental.label)) and rental.offer is None:
            offers = await provider.offers(requirements(visit.job, world))
            seen = replace(seen, offers=tuple(offers))
    except ProviderError as problem:
        seen = replace(seen, problem=problem)
    return seen


def decide(seen: Seen, policy: Policy) -> Step[Create | LogIn]:
    job, now, rental = seen.visit.job, seen.visit.now, seen.rental
    if wants_out(job):
        return Step(write=_given_up(seen, Reason.CANCELLED_BY_USER, "cancelled while a machine was sought"))
    if rental is None:
        return Step(write=_intent(seen))
    if isinstance(seen.problem, AccessRefused):
        return Step(write=_given_up(seen, Reason.ACCESS_REFUSED, str(seen.problem)))
    if now - job.state_since > policy.ready_seconds:
        said = f"no machine could be logged in to within {policy.ready_seconds / 60:.0f} min"
        return Step(write=_given_up(seen, Reason.MACHINE_NOT_READY, said))
    if seen.listing is None:
        after, seconds, _ = failed_try(job, policy)
        return Step(write=wait(after, seconds, alerts=_slow(seen, policy)))
    machines = labelled(seen.listing, rental.label)
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
        account=job.spec.account,
        state=RentalState.REQUESTED,
        requested_at=seen.visit.now,
    )
    return Write(job=job, rentals=(rental,), events=(Told(kind="rental_requested", payload={"label": label}),))


def _ask_or_adopt(seen: Seen, rental: Rental, machines: list[Machine], policy: Policy) -> Step[Create | LogIn]:
    assert seen.listing is not None
    job, now = seen.visit.job, seen.visit.now
    if machines:
        return Step(write=adopted(job, rental, machines, seen.listing, now=now))
    if not _may_be_created(seen, machines):
        due = _create_limit_over(seen, rental) - now
        return Step(write=wait(job, max(due, policy.provider_look_seconds), alerts=_slow(seen, policy)))
    offer = rental.offer or (seen.offers[0] if seen.offers else None)
    if offer is None:
        said = f"{job.spec.provider} has nothing to offer that fits"
        return Step(write=_given_up(seen, Reason.NO_OFFER, said))
    asked = replace(rental, create_sent_at=now, offer=offer, account=seen.listing.account)
    return Step(write=Write(job=job, rentals=(asked,)), then=Create(rental=asked, offer=offer))


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


def adopted(job: Job, rental: Rental, machines: list[Machine], listing: Listing, *, now: float) -> Write:
    """The newest machine becomes the rental's; any other with the same label is surplus and goes."""
    newest, *others = machines
    held = replace(
        rental,
        state=RentalState.HELD,
        provider_id=newest.provider_id,
        held_at=now,
        account=listing.account,
        absent_listings=0,
    )
    surplus = [surplus_rental(held, machine, now=now) for machine in others]
    told = [Told(kind="rental_held", payload={"label": rental.label, "provider_id": newest.provider_id})]
    told += [Told(kind="surplus_found", payload={"provider_id": each.provider_id}) for each in surplus]
    return Write(
        job=_with_deadline(job, held, newest, now=now),
        rentals=(held, *surplus),
        costs=(opened_cost(held, newest, now=now), *(opened_cost(each, newest, now=now) for each in surplus)),
        events=tuple(told),
    )


def surplus_rental(rental: Rental, machine: Machine, *, now: float) -> Rental:
    """A row of its own for a machine that a lost answer or a sleeping process made; it is only ever destroyed."""
    return Rental(
        label=f"{machine.label}#{machine.provider_id}",
        job_id=rental.job_id,
        attempt=rental.attempt,
        provider=rental.provider,
        account=rental.account,
        provider_id=machine.provider_id,
        state=RentalState.RELEASING,
        offer=rental.offer,
        surplus=True,
        requested_at=now,
        create_sent_at=rental.create_sent_at,
    )


def opened_cost(rental: Rental, machine: Machine, *, now: float) -> CostLine:
    """Billing is counted from the moment the machine was asked for: too much rather than too little."""
    rate = machine.price_per_hour or (rental.offer.price_per_hour if rental.offer else ZERO)
    started = rental.create_sent_at if rental.create_sent_at is not None else now
    return CostLine(
        rental_label=rental.label,
        job_id=rental.job_id,
        kind="gpu",
        rate_per_hour=rate,
        started_at=started,
        ended_at=None,
        amount=cost(rate, max(0.0, now - started)),
        source="estimate",
    )


def _with_deadline(job: Job, rental: Rental, machine: Machine, *, now: float) -> Job:
    """The hard limit counts from the first machine on: hours, or what the money buys at this machine's rate."""
    if job.deadline_at is not None:
        return job
    seconds = job.spec.max_seconds
    if machine.price_per_hour > 0 and job.spec.max_spend > 0:
        seconds = min(seconds, job.spec.max_spend / machine.price_per_hour * 3600)
    return replace(job, deadline_at=(rental.create_sent_at or now) + seconds)


def _until_reachable(seen: Seen, rental: Rental, machines: list[Machine], policy: Policy) -> Step[Create | LogIn]:
    assert seen.listing is not None
    job = seen.visit.job
    machine = next((each for each in machines if each.provider_id == rental.provider_id), None)
    if machine is None:
        return Step(write=_missing(seen, rental, policy))
    extra = [each for each in machines if each is not machine]
    if extra:
        return Step(write=adopted(job, rental, [machine, *extra], seen.listing, now=seen.visit.now))
    if machine.status is MachineStatus.FAILED:
        said = machine.message or "the provider says that the machine failed"
        return Step(write=_given_up(seen, Reason.MACHINE_NOT_READY, said))
    if machine.status is not MachineStatus.RUNNING or not machine.accesses:
        return Step(write=wait(job, policy.provider_look_seconds, alerts=_slow(seen, policy)))
    return Step(then=LogIn(access=_next_access(machine, job)))


def _next_access(machine: Machine, job: Job) -> Access:
    """The better way first; after a failed login the other one."""
    return machine.accesses[int(job.memory.get("failures", 0)) % len(machine.accesses)]


def _missing(seen: Seen, rental: Rental, policy: Policy) -> Write:
    assert seen.listing is not None
    if not shows_absence(seen.listing, account=rental.account):
        return wait(seen.visit.job, policy.provider_look_seconds, alerts=_slow(seen, policy))
    counted = replace(rental, absent_listings=rental.absent_listings + 1)
    if counted.absent_listings < _ABSENCES:
        return wait(seen.visit.job, policy.provider_look_seconds, rentals=(counted,))
    return _given_up(seen, Reason.MACHINE_NOT_READY, "the machine vanished before it could be used")


def _given_up(seen: Seen, reason: Reason, explanation: str) -> Write:
    return give_up(seen.visit.job, reason, now=seen.visit.now, explanation=explanation)


def _slow(seen: Seen, policy: Policy) -> tuple[Alert, ...]:
    waited = seen.visit.now - seen.visit.job.state_since
    if waited < policy.monitoring.provisioning_alert:
        return ()
    return (
        Alert(
            kind="provisioning", job_id=seen.visit.job.id, message=f"no machine is ready after {waited / 60:.0f} min"
        ),
    )


async def perform(action: Create | LogIn, job: Job, seen: Seen, world: World) -> Write:
    if isinstance(action, Create):
        return await _create(action, job, seen, world)
    return await _log_in(action, job, seen, world)


async def _create(action: Create, job: Job, seen: Seen, world: World) -> Write:
    provider = world.provider(job.spec.provider)
    want = requirements(job, world)
    unsent = replace(action.rental, create_sent_at=None, offer=None)
    seen.visit.guard.check()  # the last thing before sending: a process that slept here must not rent
    try:
        provider_id = await provider.create(action.offer, label=action.rental.label, want=want)
    except NoCapacity as problem:
        after, seconds, failures = failed_try(job, world.policy)
        if failures >= 2:
            return replace(_given_up(seen, Reason.NO_OFFER, str(problem)), rentals=(unsent,))
        told = Told(kind="create_refused", payload={"problem": str(problem)})
        return wait(after, seconds, rentals=(unsent,), events=(told,))
    except ProviderBusy as problem:
        after, seconds, _ = failed_try(job, world.policy)
        return wait(after, max(seconds, problem.retry_after_seconds or 0.0), rentals=(unsent,))
    except AccessRefused as problem:
        return replace(_given_up(seen, Reason.ACCESS_REFUSED, str(problem)), rentals=(unsent,))
    except AnswerLost as problem:
        told = Told(kind="create_unanswered", payload={"problem": str(problem)})
        return wait(job, provider.create_limit_seconds, events=(told,))
    machine = Machine(
        provider_id=provider_id,
        label=action.rental.label,
        status=MachineStatus.CREATING,
        created_at=0.0,
        price_per_hour=action.offer.price_per_hour,
    )
    listing = Listing(machines=(machine,), complete=True, account=action.rental.account or "")
    return adopted(recovered(job), action.rental, [machine], listing, now=seen.visit.now)


async def _log_in(action: LogIn, job: Job, seen: Seen, world: World) -> Write:
    assert seen.rental is not None
    remote = world.remote(seen.rental.label, action.access)
    try:
        await check(remote, ["python3", "-c", "import sys; assert sys.version_info >= (3, 8)"], timeout=_LOGIN_SECONDS)
    except Unreachable as problem:
        await world.forget_remote(seen.rental.label)
        return cut_off(job, now=seen.visit.now, policy=world.policy, problem=str(problem))
    except (CommandFailed, HostKeyRefused) as problem:
        return _given_up(seen, Reason.PREFLIGHT_FAILED, str(problem))
    known = recovered(job).remember(access=access_to_json(action.access), label=seen.rental.label)
    return go_on(known, Move.REACHABLE, now=seen.visit.now, cleared_alerts=("provisioning", "silence"))


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
