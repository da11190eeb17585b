"""Alerts that no single job raises: low credit at a provider, high total spending, jobs that no worker takes."""

from __future__ import annotations

from stationmaster.control.flow.world import World
from stationmaster.errors import ProviderError
from stationmaster.event_log import get_logger
from stationmaster.model import Alert
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.providers.base import KnowsMoney

log = get_logger("stationmaster.alerts")

LOW_CREDIT = "low_credit"
SPENDING = "spending"
UNKNOWN_STATE = "unknown_state"
NOT_SERVED = "not_served"


async def alert_low_credit(world: World, floor: MicroDollars) -> None:
    """Raise an alert for each provider whose credit is below `floor`; clear it when none is. Safe to repeat."""
    low = []
    for name, provider in list(world.providers.items()):
        if not isinstance(provider, KnowsMoney):
            continue
        try:
            credit = await provider.credit()
        except ProviderError as problem:
            log.info("credit.unknown", provider=name, problem=str(problem))
            return  # unknown credit neither raises nor clears the alert
        if credit < floor:
            low.append(f"{name} has {format_dollars(credit)} of credit left; trainings there end when it is used up")
    if not low:
        await world.ask_store(world.store.alerts.clear_without_lease, LOW_CREDIT)
    for message in low:
        await world.ask_store(world.store.alerts.raise_without_lease, Alert(kind=LOW_CREDIT, message=message))


async def alert_spending(world: World) -> None:
    """Raise an alert while all machines together cost more per hour than is set, clear it after. Safe to repeat."""
    most = world.policy.limits.hourly_alert
    if not most:
        return
    rate = await world.ask_store(world.store.costs.rate_now)
    if rate <= most:
        await world.ask_store(world.store.alerts.clear_without_lease, SPENDING)
        return
    message = f"all machines together cost {format_dollars(rate)} per hour, more than {format_dollars(most)}"
    await world.ask_store(world.store.alerts.raise_without_lease, Alert(kind=SPENDING, message=message))


async def alert_unknown_states(world: World) -> None:
    """Raise an alert for each job whose state only a newer version knows."""
    for job_id, state in await world.ask_store(world.store.jobs.unknown_states):
        message = f"job {job_id} is in state {state}, which this version does not know; it is left alone"
        alert = Alert(kind=UNKNOWN_STATE, job_id=job_id, message=message)
        await world.ask_store(world.store.alerts.raise_without_lease, alert)


async def alert_not_served(world: World) -> None:
    """Raise an alert for each job whose provider no live worker serves; clear it when one does. Safe to repeat."""
    store = world.store
    alive = await world.ask_store(store.workers.alive)
    served = {name for worker in alive for name in worker.providers} | set(world.providers)
    waiting = dict(await world.ask_store(store.jobs.of_other_providers, sorted(served)))
    raised = [alert for alert in await world.ask_store(store.alerts.open) if alert.kind == NOT_SERVED]
    if any(alert.job_id not in waiting for alert in raised):
        await world.ask_store(store.alerts.clear_without_lease, NOT_SERVED)
    for job_id, provider in waiting.items():
        message = f"no worker serves the provider {provider}; the job waits until one does"
        alert = Alert(kind=NOT_SERVED, job_id=job_id, message=message)
        await world.ask_store(store.alerts.raise_without_lease, alert)
