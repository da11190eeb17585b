"""What the machines of a server's jobs cost."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.model import SINGLE_USER
from stationmaster.station.costs import SECONDS_OF, Budget, CostsOverTime, PaidLine, Period, SplitBy
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.http.jobs import path_of_job
from stationmaster.station.wire.costs import BudgetDocument, CostsOverTimeDocument, PaidLineDocument
from stationmaster.station.wire.document import instant

_PAGE = 500


class HttpCosts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lines(
        self,
        job_id: str | None = None,
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[PaidLine]:
        if job_id is not None:
            found = self._connection.items(f"{path_of_job(job_id)}/costs", PaidLineDocument, exact=True)
        else:
            found = self._connection.items(
                "/api/costs", PaidLineDocument, most=limit, owner=owner, after=after, limit=min(limit or _PAGE, _PAGE)
            )
        return [line.value() for line in found]

    def budget(self, user: str = SINGLE_USER) -> Budget:
        return self._connection.get(f"/api/users/{segment(user)}/budget", BudgetDocument).value()

    def over_time(self, period: Period, *, split_by: SplitBy | None = None, owner: str | None = None) -> CostsOverTime:
        part = next(part for part, seconds in SECONDS_OF.items() if seconds == period.seconds)
        found = self._connection.get(
            "/api/costs/over-time",
            CostsOverTimeDocument,
            part=part.value,
            start=instant(period.start),
            end=instant(period.end),
            split_by=None if split_by is None else split_by.value,
            owner=owner,
        )
        return found.value()
