"""Browsers that are signed in, as documents."""

from __future__ import annotations

from typing import Self

from pydantic import Field, SecretStr

from stationmaster.model import Caller, Right, Role
from stationmaster.station.doorkeeper import Session
from stationmaster.station.wire.document import Document, Instant, RequestDocument


class SignIn(RequestDocument):
    """What a browser signs in with."""

    code: SecretStr = Field(min_length=1, max_length=200, examples=["f3kQ…"])
    """The code of a one-time link, or a token."""


class SessionDocument(Document):
    """Who is signed in, and what they may do."""

    user: str = Field(examples=["me"])
    """Name of the user."""
    role: Role
    """Their role."""
    rights: tuple[Right, ...]
    """What they may do."""
    csrf_token: str | None
    """Send it as the header `X-CSRF-Token` with every change; null where the server needs no sign-in."""
    expires_at: Instant | None
    """When to sign in again; null where the server needs no sign-in."""

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls.of_caller(session.caller, csrf_token=session.csrf_token, expires_at=session.expires_at)

    @classmethod
    def of_caller(cls, caller: Caller, *, csrf_token: str | None = None, expires_at: float | None = None) -> Self:
        rights = tuple(sorted(caller.rights))
        return cls(user=caller.user, role=caller.role, rights=rights, csrf_token=csrf_token, expires_at=expires_at)
