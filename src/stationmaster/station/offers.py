"""Offers: what can be rented now for a recipe, what the job would cost on each, and what was excluded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.money import MicroDollars
from stationmaster.offers import LeftOut, LeftOutGroup, NoOffer, RankedOffer, Ranking

__all__ = ["LeftOut", "LeftOutGroup", "NoOffer", "OfferSearch", "Offers", "RankedOffer", "Ranking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferSearch:
    """A search for machines that can run a recipe."""

    recipe: str
    provider: str | None = None  # None: the one of the settings
    account: str | None = None  # which of the provider's accounts
    gpus: int | None = None  # None: as many as the recipe needs
    hours: float = 1.0  # duration of the job on an RTX 4090
    max_price: MicroDollars | None = None  # per hour
    vram_gib: float | None = None  # that each GPU must be sold with, where the recipe needs less
    disk_gib: float | None = None  # the same of the disk
    interruptible: bool = False  # cheaper, but can be outbid


class Offers(Protocol):
    def ranking(self, search: OfferSearch) -> Ranking:
        """The offers that fit now, best first, and why the others do not. Rents nothing.

        Raises NotFound and RecipeInvalid for the recipe, ConfigInvalid for the provider and its account, UserError for
        hours out of range, and ProviderError if the provider does not answer.
        """
