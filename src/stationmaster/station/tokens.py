"""Tokens: how programs and browsers prove to the HTTP service who they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import Right

__all__ = ["SIGN_IN_PATH", "CreatedToken", "NewToken", "SignInLink", "Token", "Tokens"]

SIGN_IN_PATH = "/sign-in"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token to create. Its rights are at most those of the user's role."""

    name: str  # what it is for, such as "telegram bot"
    user: str
    rights: frozenset[Right] = frozenset(Right)
    expires_in: float | None = None  # seconds; None: never


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as it is listed: only a hash of its secret is stored."""

    id: str
    name: str
    user: str
    rights: frozenset[Right]
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None  # to the minute
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedToken:
    token: Token
    secret: str  # what a program sends as `Authorization: Bearer …`; shown once, never stored


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInLink:
    """Signs a browser in, once."""

    code: str
    user: str
    url: str  # the address of the service, with the code after `#`: a browser does not send that part
    expires_at: float


class Tokens(Protocol):
    def create(self, new: NewToken) -> CreatedToken:
        """Raises NotFound for a user who does not exist, UserError for an empty or overlong name, a lifetime that is
        not above zero, and rights that the user's role does not have.
        """

    def listed(self, user: str | None = None) -> Sequence[Token]:
        """All tokens, or those of one user, newest first; also expired and revoked ones."""

    def revoke(self, token_id: str) -> Token:
        """It is refused from now on, and so are the sessions that it opened. Repeating it changes nothing. Raises
        NotFound.
        """

    def create_link(self, user: str) -> SignInLink:
        """A link that signs a browser in as the user, once and within minutes. Raises NotFound."""
