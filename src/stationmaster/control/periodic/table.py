"""Everything that is done at intervals, independent of any job: one row each, and what runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from stationmaster.control.flow.world import World
from stationmaster.control.periodic.access_cleanup import clean_up_access
from stationmaster.control.periodic.alerts import (
    alert_low_credit,
    alert_not_served,
    alert_spending,
    alert_unknown_states,
)
from stationmaster.control.periodic.dataset_cleanup import clean_up_datasets
from stationmaster.control.periodic.provider_bills import reconcile_charges
from stationmaster.control.periodic.series_upkeep import keep_up_series
from stationmaster.control.periodic.sweep import SWEEP, Sweeper
from stationmaster.control.publishing.registering import continue_registrations, has_registrations
from stationmaster.errors import StoreError
from stationmaster.event_log import get_logger
from stationmaster.money import MicroDollars
from stationmaster.settings import WorkerSettings

log = get_logger("stationmaster.periodic")

_CHECK_SECONDS = 30.0  # a worker checks at least this often whether shared work is due
_REGISTER_SECONDS = 5.0
_REGISTER_LEASE_SECONDS = 300.0
_CLEANUP_SECONDS = 3600.0
_SERIES_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicWork:
    """One row. With `lease_seconds` all workers of a store share it: the first that claims it runs it.

    Without, each worker runs it, because it concerns that worker's own computer.
    """

    name: str
    run: Callable[[World], Awaitable[object]]
    interval_seconds: float
    lease_seconds: float | None = None
    is_needed: Callable[[World], Awaitable[bool]] | None = None  # asked before a claim, which is a write


def periodic_table(settings: WorkerSettings, *, low_credit: MicroDollars, registers: bool) -> tuple[PeriodicWork, ...]:
    """The rows that these settings ask for."""
    # The lease is how long another worker waits for one that died.
    shared = partial(PeriodicWork, interval_seconds=settings.sweep, lease_seconds=settings.lease * 6)
    rows = [
        shared(name=SWEEP, run=lambda world: Sweeper(world).sweep()),
        shared(name="unknown_states", run=alert_unknown_states),
        PeriodicWork(
            name="not_served", run=alert_not_served, interval_seconds=settings.lease, lease_seconds=settings.lease
        ),
        shared(name="provider_bills", run=reconcile_charges),
        shared(name="spending", run=alert_spending),
        PeriodicWork(
            name="series_upkeep",
            run=keep_up_series,
            interval_seconds=_SERIES_SECONDS,
            lease_seconds=_SERIES_SECONDS,
        ),
        PeriodicWork(
            name="access_cleanup",
            run=clean_up_access,
            interval_seconds=_CLEANUP_SECONDS,
            lease_seconds=_CLEANUP_SECONDS,
        ),
        PeriodicWork(name="dataset_cleanup", run=clean_up_datasets, interval_seconds=_CLEANUP_SECONDS),
    ]
    if low_credit:
        rows.append(shared(name="credit", run=partial(alert_low_credit, floor=low_credit)))
    if registers:
        rows.append(
            PeriodicWork(
                name="register",
                run=continue_registrations,
                interval_seconds=_REGISTER_SECONDS,
                lease_seconds=_REGISTER_LEASE_SECONDS,
                is_needed=has_registrations,
            )
        )
    return tuple(rows)


async def repeat(work: PeriodicWork, world: World, *, owner: str) -> NoReturn:
    """Run the work whenever it is due. Errors are logged, and the next time is tried as usual."""
    while True:
        try:
            await _run_if_due(work, world, owner=owner)
        except StoreError as problem:
            log.warning("store.unavailable", work=work.name, problem=str(problem))
        except Exception as problem:  # one kind of work must not end the others
            log.error("periodic.failed", work=work.name, problem=str(problem), exc_info=True)
        is_shared = work.lease_seconds is not None
        await asyncio.sleep(min(work.interval_seconds, _CHECK_SECONDS) if is_shared else work.interval_seconds)


async def _run_if_due(work: PeriodicWork, world: World, *, owner: str) -> None:
    if work.is_needed is not None and not await work.is_needed(world):
        return
    if work.lease_seconds is None:
        await work.run(world)
        return
    periodic = world.store.periodic
    token = await world.ask_store(periodic.claim, work.name, owner, seconds=work.lease_seconds)
    if token is not None:
        await work.run(world)
        await world.ask_store(periodic.finish, work.name, token, again_in=work.interval_seconds)
