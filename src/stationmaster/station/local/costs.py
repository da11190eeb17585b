"""What machines cost, split into training, stalled and idle time."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.billing.breakdown import shares_of
from stationmaster.station.costs import PaidLine
from stationmaster.station.local.history import LocalEvents
from stationmaster.station.local.installation import Installation


class LocalCosts:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store
        self._events = LocalEvents(installation)

    def lines(self, job_id: str | None = None) -> Sequence[PaidLine]:
        lines = self._store.costs.listed() if job_id is None else self._store.costs.of_job(job_id)
        now = self._store.now()
        events = {name: self._events.of_job(name) for name in {line.job_id for line in lines}}
        return [PaidLine(line=line, shares=shares_of(line, events[line.job_id], now=now)) for line in lines]
