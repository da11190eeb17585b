"""The overview of a server's jobs."""

from __future__ import annotations

from stationmaster.station.http.connection import Connection
from stationmaster.station.overview import DEFAULT_ENDED, Overview
from stationmaster.station.wire.document import instant
from stationmaster.station.wire.overview import OverviewDocument


class HttpOverviews:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def look(
        self, *, ended_limit: int = DEFAULT_ENDED, owner: str | None = None, today_from: float | None = None
    ) -> Overview:
        found = self._connection.get(
            "/api/overview", OverviewDocument, ended_limit=ended_limit, owner=owner, today_from=instant(today_from)
        )
        return found.value()
