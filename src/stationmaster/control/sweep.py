"""The safety net: compares each provider's machines with the store, from both sides.

The provider's list is read first and the store second, so every listed machine of ours already has its intent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import structlog

from stationmaster.control.adoption import opened_cost, surplus_rental
from stationmaster.control.release import Evidence, Next, closed_cost, judge
from stationmaster.control.releasing import gather_evidence
from stationmaster.control.world import World
from stationmaster.errors import NotFound, ProviderError
from stationmaster.model import Alert, Job, Label, Machine, Rental, RentalState, State

log = structlog.get_logger("stationmaster.sweep")


@dataclass(slots=True)
class Report:
    """What a sweep found and did."""

    looked_at: int = 0
    surplus: list[str] = field(default_factory=list)
    destroyed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def sweep(world: World) -> Report:
    """Find machines that nobody works on any more and see them gone. Everything in it can be repeated."""
    report = Report()
    for name in world.providers:
        try:
            await _sweep_provider(name, world, report)
        except ProviderError as problem:
            report.problems.append(f"{name}: {problem}")
            log.warning("sweep.failed", provider=name, problem=str(problem))
    return report


async def _sweep_provider(name: str, world: World, report: Report) -> None:
    listing = await world.fleet.listing(name)
    report.looked_at += len(listing.machines)
    rentals = [each for each in await world.ask_store(world.store.rentals.not_gone) if each.provider == name]
    known = {rental.provider_id for rental in rentals}
    waiting = {rental.label for rental in rentals if rental.provider_id is None}
    for machine in listing.machines:
        if machine.provider_id not in known and machine.label not in waiting:
            found = await _surplus(machine, name, world)
            if found is not None:
                rentals.append(found)
                report.surplus.append(machine.provider_id)
    ours = [rental for rental in rentals if await _is_unattended(rental, world)]
    if ours:
        await _release(name, tuple(ours), world, report)


async def _surplus(machine: Machine, provider: str, world: World) -> Rental | None:
    """A row for a machine of our installation that no rental names; a machine of others is left alone."""
    label = Label.parse(machine.label)
    if label is None or label.installation != world.store.installation_id:
        return None
    now = await world.ask_store(world.store.now)
    origin = Rental(
        label=machine.label,
        job_id=label.job,
        attempt=label.attempt,
        provider=provider,
        state=RentalState.RELEASING,
    )
    found = surplus_rental(origin, machine, now=now)
    await world.ask_store(world.store.rentals.put_unattended, found)
    await world.ask_store(world.store.costs.put_unattended, opened_cost(found, machine, now=now))
    said = f"machine {machine.provider_id} ({machine.label}) had no owner and is being destroyed"
    await world.ask_store(
        world.store.alerts.raise_unattended, Alert(kind=f"leak {machine.provider_id}", message=said, job_id=label.job)
    )
    log.warning("sweep.leak", provider=provider, instance=machine.provider_id, label=machine.label)
    return found


async def _is_unattended(rental: Rental, world: World) -> bool:
    """Whether no worker's visit will see to this rental: it is surplus, or its job has ended."""
    if rental.surplus:
        return True
    try:
        job: Job = await world.ask_store(world.store.jobs.get, rental.job_id)
    except NotFound:
        return True
    return job.state is State.ENDED


async def _release(provider: str, rentals: tuple[Rental, ...], world: World, report: Report) -> None:
    evidence = await gather_evidence(provider, rentals, world)
    for rental in rentals:
        await _release_one(rental, evidence, world, report)


async def _release_one(rental: Rental, evidence: Evidence, world: World, report: Report) -> None:
    now = await world.ask_store(world.store.now)
    judgement = judge(rental, evidence, now=now)
    await world.ask_store(world.store.rentals.put_unattended, judgement.rental)
    if judgement.next is Next.DESTROY and judgement.rental.provider_id is not None:
        await world.provider(rental.provider).destroy(judgement.rental.provider_id)
        report.destroyed.append(judgement.rental.provider_id)
    if judgement.rental.state is RentalState.GONE:
        report.gone.append(rental.label)
        for line in await world.ask_store(world.store.costs.of_job, rental.job_id):
            if line.rental_label == rental.label:
                await world.ask_store(world.store.costs.put_unattended, replace(closed_cost(line, now=now)))
