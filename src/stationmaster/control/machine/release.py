"""When a rental is gone: destroy is repeated until two listings lack the machine and a single read confirms it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stationmaster.control.flow.listings import labelled, shows_absence
from stationmaster.control.flow.world import World
from stationmaster.model import CostLine, Listing, Rental, RentalState
from stationmaster.model.copying import changed
from stationmaster.money import cost

_ABSENCES = 2


class Next(StrEnum):
    """What a rental needs now."""

    DESTROY = "DESTROY"
    LOOK_AGAIN = "LOOK_AGAIN"
    NOTHING = "NOTHING"  # it is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    rental: Rental
    next: Next


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the provider reports: the listing, and for machines missing from it the single read (True: it exists)."""

    listing: Listing
    single_reads: dict[str, bool]
    create_limit_seconds: float


async def gather_evidence(provider_name: str, rentals: tuple[Rental, ...], world: World) -> Evidence:
    """Ask the provider about these rentals. Only reads. Raises ProviderError."""
    provider = world.provider(provider_name)
    listing = await world.listings.of(provider_name)
    reads = {
        rental.provider_id: await provider.describe(rental.provider_id) is not None
        for rental in rentals
        if rental.provider_id is not None and needs_single_read(rental, listing)
    }
    return Evidence(listing=listing, single_reads=reads, create_limit_seconds=provider.create_limit_seconds)


def needs_single_read(rental: Rental, listing: Listing) -> bool:
    """Whether enough listings lack the machine, so that only the single read is left."""
    if rental.provider_id is None or not shows_absence(listing, account=rental.account):
        return False
    listed = any(machine.provider_id == rental.provider_id for machine in listing.machines)
    return not listed and rental.absent_listings + 1 >= _ABSENCES


def judge(rental: Rental, evidence: Evidence, *, now: float) -> Judgement:
    """What is known of a rental that has to go, and what it needs next. Unknown is never gone."""
    rental = changed(rental, state=RentalState.RELEASING)
    listing = evidence.listing
    if rental.provider_id is None:
        return _judge_unnamed(rental, evidence, now=now)
    if any(machine.provider_id == rental.provider_id for machine in listing.machines):
        return Judgement(rental=_listed(rental, listing, now=now), next=Next.DESTROY)
    return _count_absence(rental, evidence, now=now)


def _judge_unnamed(rental: Rental, evidence: Evidence, *, now: float) -> Judgement:
    """For a rental whose create was never answered: its machine, if there is one, is found by its label."""
    found = labelled(evidence.listing, rental.label)
    if found:
        named = changed(rental, provider_id=found[0].provider_id)
        return Judgement(rental=_listed(named, evidence.listing, now=now), next=Next.DESTROY)
    if rental.create_sent_at is None:
        return Judgement(rental=_gone(rental, now=now), next=Next.NOTHING)  # it was never requested
    if now <= rental.create_sent_at + evidence.create_limit_seconds:
        return Judgement(rental=rental, next=Next.LOOK_AGAIN)
    return _count_absence(rental, evidence, now=now)


def _listed(rental: Rental, listing: Listing, *, now: float) -> Rental:
    """The machine exists; from now on the account that lists it is the one that can show its absence."""
    return asked_to_go(changed(rental, account=listing.account, absent_listings=0), now=now)


def asked_to_go(rental: Rental, *, now: float) -> Rental:
    """The rental as it is recorded before its machine is destroyed; the first time of asking stays."""
    asked_at = now if rental.release_asked_at is None else rental.release_asked_at
    return changed(rental, state=RentalState.RELEASING, release_asked_at=asked_at)


def _count_absence(rental: Rental, evidence: Evidence, *, now: float) -> Judgement:
    if not shows_absence(evidence.listing, account=rental.account):
        return Judgement(rental=rental, next=Next.LOOK_AGAIN)
    counted = changed(rental, absent_listings=rental.absent_listings + 1)
    if counted.absent_listings < _ABSENCES:
        return Judgement(rental=counted, next=Next.LOOK_AGAIN)
    if rental.provider_id is not None and evidence.single_reads.get(rental.provider_id, True):
        return Judgement(rental=counted, next=Next.DESTROY)  # the listing is wrong, or the read failed
    return Judgement(rental=_gone(counted, now=now), next=Next.NOTHING)


def _gone(rental: Rental, *, now: float) -> Rental:
    return changed(rental, state=RentalState.GONE, gone_at=now)


def closed_cost(line: CostLine, *, now: float) -> CostLine:
    """The line with its end: time counts until the provider confirms the end."""
    if line.ended_at is not None:
        return line
    return changed(line, ended_at=now, amount=cost(line.rate_per_hour, max(0.0, now - line.started_at)))
