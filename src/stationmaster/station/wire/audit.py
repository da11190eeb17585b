"""Entries of the audit log."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.station.audit import AuditEntry
from stationmaster.station.wire.document import Document, Instant


class AuditEntryDocument(Document):
    """A request that changed something, or that was refused."""

    id: int
    """Its number; later entries have higher ones."""
    at: Instant
    """When the request was answered."""
    user: str | None = Field(default=None, examples=["ann"])
    """Null: unknown."""
    token: str | None = None
    """The id of the token; null: a browser, or unknown."""
    action: str = Field(examples=["POST /api/jobs/{job}/stop"])
    """What was asked for: the method and route of the request."""
    subject: str | None = None
    """What it was about, such as the id of a job."""
    status: int = Field(examples=[200])
    """The HTTP status of the answer."""
    address: str | None = Field(default=None, examples=["127.0.0.1"])
    """Where the request came from."""

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        assert entry.id is not None, "a stored entry has an id"
        return cls(
            id=entry.id,
            at=entry.at,
            user=entry.user,
            token=entry.token,
            action=entry.action,
            subject=entry.subject,
            status=entry.status,
            address=entry.address,
        )

    def value(self) -> AuditEntry:
        return AuditEntry(
            id=self.id,
            at=self.at,
            user=self.user,
            token=self.token,
            action=self.action,
            subject=self.subject,
            status=self.status,
            address=self.address,
        )
