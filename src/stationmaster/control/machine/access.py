"""The machine of a job's current attempt: what it must be, how it is reached, whether it still exists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from stationmaster.control.flow.listings import shows_absence
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import Visit, World
from stationmaster.errors import ProviderError
from stationmaster.model import (
    LIVE_RENTAL_STATES,
    Access,
    Job,
    Listing,
    Machine,
    MachineStatus,
    Rental,
    RentalState,
    Requirements,
    SshAccess,
)
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.host import Host

_ABSENCES = 2
_SUSPICIOUS_LOSSES = 2


class Fate(StrEnum):
    """What the provider says of a machine that does not answer."""

    THERE = "THERE"
    STOPPED = "STOPPED"  # its disk is kept, and bills
    MISSING = "MISSING"  # absent from a complete listing, not yet often enough
    GONE = "GONE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The machine of a job's current attempt as its provider sees it."""

    fate: Fate
    rental: Rental | None = None
    machine: Machine | None = None
    single_read_at: float | None = None  # when a suspicious listing's single read said that it is gone


ANSWERING = Sighting(fate=Fate.THERE)
"""The machine answered us itself: nobody else needs to be asked."""


def requirements(job: Job, recipe: Recipe) -> Requirements:
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


async def live_rental(job: Job, world: World) -> Rental | None:
    """The one rental that the job may use; the store lets no second be live."""
    rentals = await world.rentals.of(job.id)
    return next((each for each in rentals if each.state in LIVE_RENTAL_STATES), None)


def host_of(job: Job, world: World) -> Host:
    """trackside's caller on the job's machine, by what the login wrote down."""
    return world.host(job, label_of(job), access_of(job))


def access_of(job: Job) -> Access:
    """The way to the job's machine."""
    assert job.machine.access is not None, "no login to the machine has succeeded yet"
    return job.machine.access


def label_of(job: Job) -> str:
    """The label of the rental whose machine the job works on."""
    assert job.machine.label is not None, "no login to the machine has succeeded yet"
    return job.machine.label


async def drop_connection(job: Job, world: World) -> None:
    await world.forget_remote(label_of(job))


def may_get_secrets(job: Job, policy: Policy) -> bool:
    """Whether tokens and signed addresses may go to the machine: somebody could verify that it is the right one."""
    access = access_of(job)
    return not (isinstance(access, SshAccess) and access.unverified) or policy.allow_unverified


async def sight(visit: Visit, world: World) -> Sighting:
    """Look for a machine that does not answer; only the provider's own word makes it GONE."""
    rental = await live_rental(visit.job, world)
    if rental is None or rental.provider_id is None:
        return Sighting(fate=Fate.GONE, rental=rental)
    try:
        return await _sight(rental, visit, world)
    except ProviderError:
        return Sighting(fate=Fate.UNKNOWN, rental=rental)


async def _sight(rental: Rental, visit: Visit, world: World) -> Sighting:
    listing = await world.fleet.listing(rental.provider)
    machine = next((each for each in listing.machines if each.provider_id == rental.provider_id), None)
    if machine is not None:
        known = {MachineStatus.FAILED: Fate.GONE, MachineStatus.STOPPED: Fate.STOPPED}
        return Sighting(fate=known.get(machine.status, Fate.THERE), rental=rental, machine=machine)
    if not shows_absence(listing, account=rental.account):
        return Sighting(fate=Fate.UNKNOWN, rental=rental)
    if visit.job.machine.absences + 1 < _ABSENCES:
        return Sighting(fate=Fate.MISSING, rental=rental)
    single = await world.provider(rental.provider).describe(str(rental.provider_id))
    if single is not None:
        return Sighting(fate=Fate.THERE, rental=rental, machine=single)
    return await _believed(listing, rental, visit, world)


async def _believed(listing: Listing, rental: Rental, visit: Visit, world: World) -> Sighting:
    """A list that lost several machines at once is suspect: then a second single read, some minutes later, decides."""
    held = [each for each in await world.ask_store(world.store.rentals.not_gone) if each.state is RentalState.HELD]
    listed = {machine.provider_id for machine in listing.machines}
    lost = [each for each in held if each.provider == rental.provider and each.provider_id not in listed]
    first_read = visit.job.machine.gone_read_at
    if len(lost) < _SUSPICIOUS_LOSSES:
        return Sighting(fate=Fate.GONE, rental=rental)
    if first_read is not None and visit.now - first_read >= world.policy.suspicion_seconds:
        return Sighting(fate=Fate.GONE, rental=rental)
    return Sighting(fate=Fate.MISSING, rental=rental, single_read_at=first_read or visit.now)


def missed(job: Job, sighting: Sighting) -> Job:
    """The job with one more look counted that did not find its machine."""
    known = job.machine
    gone_read_at = sighting.single_read_at or known.gone_read_at
    return replace(job, machine=replace(known, absences=known.absences + 1, gone_read_at=gone_read_at))
