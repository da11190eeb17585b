"""Offers of the providers of a server."""

from __future__ import annotations

from stationmaster.money import exact_dollars
from stationmaster.station.http.connection import Connection
from stationmaster.station.offers import OfferSearch, Ranking
from stationmaster.station.wire.offers import RankingDocument


class HttpOffers:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ranking(self, search: OfferSearch) -> Ranking:
        asked = {
            "recipe": search.recipe,
            "provider": search.provider,
            "account": search.account,
            "hours": search.hours,
            "max_price_usd": exact_dollars(search.max_price),
            "gpus": search.gpus,
            "vram_gib": search.vram_gib,
            "disk_gib": search.disk_gib,
            "interruptible": search.interruptible,
        }
        found = self._connection.send("GET", "/api/offers", parameters=asked, patient=True)
        return self._connection.read(found, RankingDocument).value()
