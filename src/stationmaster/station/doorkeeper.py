"""Who is asking: what the HTTP service finds out about a request. Not part of the Station protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import Caller
from stationmaster.station.audit import AuditEntry

__all__ = ["Doorkeeper", "OpenedSession", "Session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser that is signed in."""

    caller: Caller
    csrf_token: str  # every change must send it, so that no other site can make the browser ask for one
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSession:
    session: Session
    secret: str  # the browser's cookie


class Doorkeeper(Protocol):
    @property
    def installation(self) -> str:
        """Whose door it is."""

    def caller_of_token(self, secret: str) -> Caller:
        """Raises NotSignedIn for a token that is unknown, expired, revoked, or of a user who was removed."""

    def session(self, secret: str) -> Session:
        """The session of a browser's cookie. Raises NotSignedIn if it is over."""

    def open_session(self, code: str) -> OpenedSession:
        """Sign a browser in by the code of a link, which is used up, or by a token. Raises NotSignedIn."""

    def close_session(self, secret: str) -> None:
        """Sign a browser out. Repeating it changes nothing."""

    def record(self, entry: AuditEntry) -> None:
        """Add to the audit log."""
