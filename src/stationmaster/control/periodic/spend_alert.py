"""Says when all machines together cost more in an hour than anybody wanted."""

from __future__ import annotations

from stationmaster.control.flow.world import World
from stationmaster.model import Alert
from stationmaster.money import format_dollars

SPENDING = "spending"


async def watch_spending(world: World) -> None:
    """Alert while the machines' hourly cost is above the policy's; cleared when it no longer is. Safe to repeat."""
    most = world.policy.hourly_alert
    if not most:
        return
    rate = await world.ask_store(world.store.costs.rate_now)
    if rate <= most:
        await world.ask_store(world.store.alerts.clear_unattended, SPENDING)
        return
    said = f"all machines together cost {format_dollars(rate)} per hour, more than {format_dollars(most)}"
    await world.ask_store(world.store.alerts.raise_unattended, Alert(kind=SPENDING, message=said))
