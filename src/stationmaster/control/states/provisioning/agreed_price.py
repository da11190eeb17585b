"""What keeps a rental within what a person agreed to, and within the provider's credit and room."""

from __future__ import annotations

from collections.abc import Iterable

from stationmaster.control.flow.world import World
from stationmaster.estimate import is_as_fast, most_per_hour
from stationmaster.model import JobSpec, Offer, Quote, Rental
from stationmaster.money import format_dollars
from stationmaster.providers.base import KnowsMoney, Provider


def within_agreed(offers: Iterable[Offer], spec: JobSpec) -> list[Offer]:
    """Offers that a person has agreed to, in their order: no dearer by the hour than was shown, on a GPU that is as
    fast as the one that was shown. What costs nothing needs no agreement.
    """
    if spec.quote.price_per_hour <= 0:
        return list(offers)
    most = most_per_hour(spec.quote, spec.max_price_per_hour)
    return [offer for offer in offers if offer.price_per_hour <= most and is_as_fast(offer.gpu, spec.quote.gpu)]


def agreed_in_words(spec: JobSpec) -> str:
    gpu = f"{spec.quote.gpu} or faster, " if spec.quote.gpu else ""
    return f"{gpu}at most {format_dollars(most_per_hour(spec.quote, spec.max_price_per_hour), 3)} per hour"


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
