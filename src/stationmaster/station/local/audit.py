"""The audit log in the store."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.station.audit import AuditEntry
from stationmaster.station.local.installation import Installation


class LocalAudit:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store

    def entries(self, *, limit: int = 100, before: int | None = None, user: str | None = None) -> Sequence[AuditEntry]:
        return [
            AuditEntry(
                id=one.id,
                at=one.at,
                user=one.actor,
                token=one.token_id,
                action=one.action,
                subject=one.subject,
                status=one.status,
                address=one.address,
            )
            for one in self._store.access.audit(limit=limit, before=before, actor=user)
        ]
