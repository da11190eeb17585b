"""What the machines of a server's jobs cost."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.station.costs import PaidLine
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.jobs import path_of_job
from stationmaster.station.wire.costs import PaidLineDocument

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
