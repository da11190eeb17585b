"""Tokens, as one user sees them: their own. What they create may do at most what they may do themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import RIGHTS, Caller, Right
from stationmaster.station.base import Station
from stationmaster.station.owned.rights import require
from stationmaster.station.tokens import CreatedToken, NewToken, SignInLink, Token


class OwnedTokens:
    """Also for an administrator whose token may not manage: they see all tokens, and change at most their own."""

    def __init__(self, caller: Caller, station: Station) -> None:
        self._caller = caller
        self._station = station
        self._all = station.tokens

    def create(self, new: NewToken) -> CreatedToken:
        require(self._caller, Right.TRAIN)
        self._require_self(new.user)
        rights = self._caller.rights if new.rights == frozenset(Right) else new.rights
        if not rights <= self._caller.rights:
            raise Forbidden(
                f"{self._caller.user} may not give these rights: {', '.join(sorted(rights - self._caller.rights))}",
                hint=f"use some of: {', '.join(sorted(self._caller.rights))}",
            )
        ends_in = self._seconds_left()
        if ends_in is not None and (new.expires_in is None or new.expires_in > ends_in):
            raise Forbidden(
                "a token cannot create one that lasts longer than itself",
                hint=f"let it expire within {max(0, int(ends_in))} seconds",
            )
        return self._all.create(replace(new, rights=rights))

    def listed(self, user: str | None = None) -> Sequence[Token]:
        if self._caller.sees_all:
            return self._all.listed(user)
        return self._all.listed(self._caller.user) if user in (None, self._caller.user) else []

    def revoke(self, token_id: str) -> Token:
        found = next((one for one in self.listed() if one.id == token_id), None)
        if found is None:
            raise NotFound(f"there is no token {token_id}", hint="run `stationmaster tokens list` to see them")
        if token_id != self._caller.token:  # whoever has a token may always give it up
            require(self._caller, Right.TRAIN)
            self._require_self(found.user)
        return self._all.revoke(token_id)

    def create_link(self, user: str) -> SignInLink:
        """The session that it opens has all rights of the user's role, for weeks."""
        self._require_self(user)
        if self._caller.rights != RIGHTS[self._caller.role] or self._seconds_left() is not None:
            raise Forbidden(
                "a token with fewer rights, or one that expires, cannot create a sign-in link",
                hint="sign in with the token itself, or ask an administrator for a link",
            )
        return self._all.create_link(user)

    def _seconds_left(self) -> float | None:
        """Until the caller's own token expires; None: never."""
        if self._caller.token is None:
            return None
        own = next((one for one in self._all.listed(self._caller.user) if one.id == self._caller.token), None)
        return None if own is None or own.expires_at is None else own.expires_at - self._station.now()

    def _require_self(self, user: str) -> None:
        if user == self._caller.user:
            return
        if not self._caller.sees_all:
            raise NotFound(f"there is no user {user}", hint="run `stationmaster users list` to see them")
        require(self._caller, Right.MANAGE)
