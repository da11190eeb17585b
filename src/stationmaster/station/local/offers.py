"""Offers of the providers in the settings."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from stationmaster.errors import UserError
from stationmaster.model import Requirements
from stationmaster.money import cost
from stationmaster.offers import RankedOffer, Ranking
from stationmaster.providers.base import Provider, RanksOffers
from stationmaster.providers.no_offer import why_no_offer
from stationmaster.recipes.registry import find
from stationmaster.recipes.schema import Needs
from stationmaster.station.local.installation import Installation
from stationmaster.station.offers import OfferSearch

_LEAST_HOURS, _MOST_HOURS = 0.01, 10_000.0


class LocalOffers:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def ranking(self, search: OfferSearch) -> Ranking:
        if not _LEAST_HOURS <= search.hours <= _MOST_HOURS:
            raise UserError(f"hours: {search.hours} is not a number of hours", hint="write hours, for example 1.5")
        provider = self._installation.provider(search.provider, search.account)
        recipe = find(search.recipe, folders=self._installation.settings.recipes).recipe
        return asyncio.run(_explained(provider, _requirements(recipe.needs, search)))


def _requirements(needs: Needs, search: OfferSearch) -> Requirements:
    return Requirements(
        gpus=max(needs.gpus, search.gpus or 0),
        vram_gib=max(needs.vram_gib, search.vram_gib or 0.0),
        disk_gib=max(needs.disk_gib, search.disk_gib or 0.0),
        cuda=needs.cuda,
        hours=search.hours,
        max_price_per_hour=search.max_price,
        interruptible=search.interruptible,
    )


async def _explained(provider: Provider, want: Requirements) -> Ranking:
    ranking = await _ranking(provider, want)
    return ranking if ranking.chosen else replace(ranking, no_offer=await why_no_offer(provider, want))


async def _ranking(provider: Provider, want: Requirements) -> Ranking:
    """Rank the offers. For a provider without its own ranking, each offer takes the given hours."""
    if isinstance(provider, RanksOffers):
        return await provider.ranking(want)
    chosen = [
        RankedOffer(offer=offer, hours=want.hours, job_cost=cost(offer.price_per_hour, want.hours * 3600))
        for offer in await provider.offers(want)
    ]
    return Ranking(chosen=tuple(chosen), left_out=())
