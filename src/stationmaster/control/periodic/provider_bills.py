"""Replaces our cost estimates by the provider's charges, some time after a machine is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from stationmaster.control.flow.world import World
from stationmaster.errors import ProviderError
from stationmaster.event_log import get_logger
from stationmaster.model import Charge, CostLine, Rental
from stationmaster.money import ZERO, MicroDollars
from stationmaster.providers.base import KnowsMoney

log = get_logger("stationmaster.charges")

_DAY_SECONDS = 86400.0


async def reconcile_charges(world: World, *, at_once: bool = False) -> int:
    """Replace our estimates with the provider's figures. Returns the number of rentals that got them.

    Until a provider's charges are complete our estimate stays, unless `at_once`.
    """
    now = await world.now()
    lines = await world.ask_store(world.store.costs.awaiting_charges, ended_before=now)
    by_provider: dict[str, list[tuple[Rental, CostLine]]] = defaultdict(list)
    jobs = await world.ask_store(world.store.jobs.several, {line.job_id for line in lines})
    for line in lines:
        job = jobs.get(line.job_id)
        if job is not None and job.spec.adopted is not None:
            continue  # the provider's figures include the time before the adoption, which is not the job's
        rental = await world.ask_store(world.store.rentals.by_label, line.rental_label)
        if rental is not None and rental.provider_id is not None:
            by_provider[rental.provider].append((rental, line))
    done = 0
    for name, pairs in by_provider.items():
        try:
            done += await _reconcile_provider(name, pairs, world, now=now, at_once=at_once)
        except ProviderError as problem:
            log.warning("charges.not_read", provider=name, problem=str(problem))
    return done


async def _reconcile_provider(
    name: str, pairs: list[tuple[Rental, CostLine]], world: World, *, now: float, at_once: bool
) -> int:
    provider = world.providers.get(name)
    if provider is None or not isinstance(provider, KnowsMoney):
        return 0
    complete = now - (0.0 if at_once else provider.billed_after_seconds)
    pairs = [(rental, line) for rental, line in pairs if line.ended_at is not None and line.ended_at < complete]
    if not pairs:
        return 0
    since = min(line.started_at for _, line in pairs) - _DAY_SECONDS
    charges = await provider.charges(since=since, until=now + _DAY_SECONDS)
    done = 0
    for rental, line in pairs:
        billed = [charge for charge in charges if charge.provider_id == rental.provider_id]
        if billed:
            await world.ask_store(world.store.costs.reconcile, reconciled(line, billed))
            done += 1
    return done


def reconciled(line: CostLine, charges: Iterable[Charge]) -> list[CostLine]:
    """The provider's charges by kind as cost lines; a kind that it did not bill costs nothing."""
    amounts: dict[str, int] = defaultdict(int)
    for charge in charges:
        amounts[charge.kind] += charge.amount
    amounts.setdefault(line.kind, ZERO)
    return [
        replace(line, kind=kind, amount=MicroDollars(amount), source="provider")
        for kind, amount in sorted(amounts.items())
    ]
