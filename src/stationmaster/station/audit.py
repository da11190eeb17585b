"""The audit log: who changed what through the HTTP service, and who was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Audit", "AuditEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    at: float
    user: str | None  # None: unknown
    token: str | None  # id of the token; None: a browser, or unknown
    action: str  # such as "POST /api/jobs/{job}/stop"
    subject: str | None  # such as the id of the job
    status: int  # of the answer
    address: str | None = None  # from where
    id: int | None = None


class Audit(Protocol):
    def entries(self, *, limit: int = 100, before: int | None = None, user: str | None = None) -> Sequence[AuditEntry]:
        """The newest entries first; `before` is the id of the last entry of the page before."""
