"""Offers, as users may search them: of the providers that they may choose."""

from __future__ import annotations

from stationmaster.station.offers import Offers, OfferSearch, Ranking
from stationmaster.station.owned.allowances import Allowances


class OwnedOffers:
    def __init__(self, allowances: Allowances, offers: Offers) -> None:
        self._allowances = allowances
        self._all = offers

    def ranking(self, search: OfferSearch) -> Ranking:
        self._allowances.require_provider(search.provider, search.account)
        return self._all.ranking(search)
