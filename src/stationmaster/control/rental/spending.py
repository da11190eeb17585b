"""What keeps a rental from costing more than was said: the quote, the provider's credit, the number of machines."""

from __future__ import annotations

from collections.abc import Iterable

from stationmaster.control.world import World
from stationmaster.model import JobSpec, Offer, Quote, Rental
from stationmaster.money import MicroDollars, cost, format_dollars
from stationmaster.providers.base import KnowsMoney, Provider

PRICE_TOLERANCE = 1.2
"""A job may come to cost so much more than was quoted; above that the machine is not rented."""


SMALL_CHANGE = MicroDollars(100_000)
"""A whole job that costs no more than this above its quote is not worth a refusal."""


def affordable(offers: Iterable[Offer], spec: JobSpec) -> list[Offer]:
    """Offers at about the quoted price, in their order. What was quoted as free has no other price to compare with."""
    quote = spec.quote
    if quote.price_per_hour <= 0:
        return list(offers)
    most = max(quote.cost_high * PRICE_TOLERANCE, quote.cost_high + SMALL_CHANGE)
    return [offer for offer in offers if cost(offer.price_per_hour, quote.hours_high * 3600) <= most]


async def credit_problem(quote: Quote, provider: Provider) -> str | None:
    """Why the account's credit is too small for the job; None if it is not, or if the provider knows no credit."""
    if not isinstance(provider, KnowsMoney) or not quote.cost_high:
        return None
    credit = await provider.credit()
    if credit >= quote.cost_high:
        return None
    needed, left = format_dollars(quote.cost_high), format_dollars(credit)
    return f"{provider.name} has {left} of credit, the job may cost {needed}"


async def is_full(rental: Rental, world: World) -> bool:
    """Whether other jobs have rented, or are about to, as many machines of this provider as the settings allow."""
    most = world.policy.max_rentals.get(rental.provider)
    if most is None:
        return False
    taken = await world.ask_store(world.store.rentals.count_others, rental)
    return taken >= most
