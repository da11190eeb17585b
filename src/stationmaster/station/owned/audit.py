"""The audit log, as one user sees it: what was done in their name."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.model import Caller
from stationmaster.station.audit import Audit, AuditEntry


class OwnedAudit:
    def __init__(self, caller: Caller, audit: Audit) -> None:
        self._caller = caller
        self._all = audit

    def entries(self, *, limit: int = 100, before: int | None = None, user: str | None = None) -> Sequence[AuditEntry]:
        if user not in (None, self._caller.user):
            return []
        return self._all.entries(limit=limit, before=before, user=self._caller.user)
