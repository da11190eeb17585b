"""Says in time when a provider's credit runs out."""

from __future__ import annotations

from stationmaster.control.flow.world import World
from stationmaster.errors import ProviderError
from stationmaster.event_log import get_logger
from stationmaster.model import Alert
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.providers.base import KnowsMoney

log = get_logger("stationmaster.credit")

LOW_CREDIT = "low_credit"


async def watch_credit(world: World, floor: MicroDollars) -> None:
    """Alert when a provider's credit is below `floor`; the alert is cleared when none's is. Safe to repeat."""
    low = []
    for name, provider in list(world.providers.items()):
        if not isinstance(provider, KnowsMoney):
            continue
        try:
            credit = await provider.credit()
        except ProviderError as problem:
            log.info("credit.unknown", provider=name, problem=str(problem))
            return  # unknown is not low, and not enough either
        if credit < floor:
            low.append(f"{name} has {format_dollars(credit)} of credit left; trainings there end when it is used up")
    if not low:
        await world.ask_store(world.store.alerts.clear_unattended, LOW_CREDIT)
    for said in low:
        await world.ask_store(world.store.alerts.raise_unattended, Alert(kind=LOW_CREDIT, message=said))
