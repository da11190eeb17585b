"""The audit log of a server."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.station.audit import AuditEntry
from stationmaster.station.http.connection import Connection
from stationmaster.station.wire.audit import AuditEntryDocument

_LARGEST_PAGE = 1000


class HttpAudit:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def entries(self, *, limit: int = 100, before: int | None = None, user: str | None = None) -> Sequence[AuditEntry]:
        page = min(limit, _LARGEST_PAGE)
        found = self._connection.items(
            "/api/audit", AuditEntryDocument, most=limit, after=before, limit=page, user=user
        )
        return [one.value() for one in found]
