"""Offers: what can be rented now for a recipe, what the job would cost on each, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.money import MicroDollars
from stationmaster.offers import LeftOut, LeftOutGroup, RankedOffer, Ranking

__all__ = ["LeftOut", "LeftOutGroup", "OfferSearch", "Offers", "RankedOffer", "Ranking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSearch:
    """What is looked for: machines that satisfy a recipe's needs."""

    recipe: str
    provider: str | None = None  # None: the one of the settings
    account: str | None = None  # which of the provider's accounts
    hours: float = 1.0  # that the job takes on an RTX 4090
    max_price: MicroDollars | None = None  # for an hour
    interruptible: bool = False  # bids: cheaper, may be taken away


class Offers(Protocol):
    def ranking(self, search: OfferSearch) -> Ranking:
        """What fits now, best first, and why the rest does not. Rents nothing.

        Raises NotFound and RecipeInvalid for the recipe, ConfigInvalid for the provider and its account, UserError for
        hours that no job takes, and ProviderError where the provider gives no answer.
        """
