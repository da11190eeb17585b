"""The overview of a user's own jobs."""

from __future__ import annotations

from stationmaster.model import Caller
from stationmaster.station.overview import DEFAULT_ENDED, Overview, Overviews


class OwnedOverviews:
    def __init__(self, caller: Caller, overviews: Overviews) -> None:
        self._caller = caller
        self._all = overviews

    def look(
        self, *, ended_limit: int = DEFAULT_ENDED, owner: str | None = None, today_from: float | None = None
    ) -> Overview:
        """Always of the caller's jobs: there is nothing else to see, whoever is asked for."""
        return self._all.look(ended_limit=ended_limit, owner=self._caller.user, today_from=today_from)
