"""The tokens of a server."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import NotFound
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.tokens import SIGN_IN_PATH, CreatedToken, NewToken, SignInLink, Token
from stationmaster.station.wire.tokens import (
    CreatedTokenDocument,
    NewTokenDocument,
    SignInLinkDocument,
    TokenDocument,
)


class HttpTokens:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, new: NewToken) -> CreatedToken:
        return self._connection.post("/api/tokens", CreatedTokenDocument, NewTokenDocument.of(new)).created_token()

    def listed(self, user: str | None = None) -> Sequence[Token]:
        return [one.value() for one in self._connection.items("/api/tokens", TokenDocument, user=user)]

    def revoke(self, token_id: str) -> Token:
        if not token_id:
            raise NotFound("the id of the token is empty", hint="run `stationmaster tokens list` to see them")
        found = self._connection.send("DELETE", f"/api/tokens/{segment(token_id)}")
        return self._connection.read(found, TokenDocument).value()

    def create_link(self, user: str) -> SignInLink:
        if not user:
            raise NotFound("the name of the user is empty", hint="run `stationmaster users list` to see them")
        found = self._connection.post(f"/api/users/{segment(user)}/sign-in-links", SignInLinkDocument)
        # Whoever asks reaches the server at this address; it may know itself only by another.
        return found.value(f"{self._connection.url}{SIGN_IN_PATH}#{found.code}")
