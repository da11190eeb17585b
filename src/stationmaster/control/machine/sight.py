"""Whether the machine of a job's current attempt still exists, by its provider's listings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from stationmaster.control.flow.listings import shows_absence
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import live_rental
from stationmaster.errors import ProviderError
from stationmaster.model import Job, Listing, Machine, MachineStatus, Rental, RentalState

_ABSENCES = 2
_SUSPICIOUS_LOSSES = 2


class Fate(StrEnum):
    """What the provider reports of a machine that does not answer."""

    THERE = "THERE"
    STOPPED = "STOPPED"  # its disk is kept, and bills
    MISSING = "MISSING"  # absent from a complete listing, not yet often enough
    GONE = "GONE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The machine of a job's current attempt as its provider reports it."""

    fate: Fate
    rental: Rental | None = None
    machine: Machine | None = None
    single_read_at: float | None = None  # when, after a suspicious listing, a single read first did not find it


ANSWERING = Sighting(fate=Fate.THERE)
"""The machine answered, so its provider need not be asked."""


async def sight(visit: Visit, world: World) -> Sighting:
    """Look for a machine that does not answer; only the provider's listing and single read make it GONE."""
    rental = await live_rental(visit.job, world)
    if rental is None or rental.provider_id is None:
        return Sighting(fate=Fate.GONE, rental=rental)
    try:
        return await _sight(rental, visit, world)
    except ProviderError:
        return Sighting(fate=Fate.UNKNOWN, rental=rental)


async def _sight(rental: Rental, visit: Visit, world: World) -> Sighting:
    provider = world.provider(rental.provider)  # opens that of a machine that is not ours
    listing = await world.listings.of(rental.provider)
    machine = next((each for each in listing.machines if each.provider_id == rental.provider_id), None)
    if machine is not None:
        known = {MachineStatus.FAILED: Fate.GONE, MachineStatus.STOPPED: Fate.STOPPED}
        return Sighting(fate=known.get(machine.status, Fate.THERE), rental=rental, machine=machine)
    if not shows_absence(listing, account=rental.account):
        return Sighting(fate=Fate.UNKNOWN, rental=rental)
    if visit.job.machine.absences + 1 < _ABSENCES:
        return Sighting(fate=Fate.MISSING, rental=rental)
    single = await provider.describe(str(rental.provider_id))
    if single is not None:
        return Sighting(fate=Fate.THERE, rental=rental, machine=single)
    return await _believed(listing, rental, visit, world)


async def _believed(listing: Listing, rental: Rental, visit: Visit, world: World) -> Sighting:
    """A listing that lost several machines at once is suspect: a second single read, some minutes later, decides."""
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
    """The job with one more absence of its machine counted."""
    known = job.machine
    gone_read_at = sighting.single_read_at or known.gone_read_at
    return replace(job, machine=replace(known, absences=known.absences + 1, gone_read_at=gone_read_at))
