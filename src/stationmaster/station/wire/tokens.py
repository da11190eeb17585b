"""Tokens, and links that sign a browser in."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from stationmaster.durations import LONGEST_SECONDS
from stationmaster.model import SINGLE_USER, Right
from stationmaster.station.tokens import CreatedToken, NewToken, SignInLink, Token
from stationmaster.station.wire.document import Document, Instant, RequestDocument, ShortText

Rights = Annotated[tuple[Right, ...], Field(max_length=10, examples=[["read", "train"]])]


class TokenDocument(Document):
    """A token, without its secret."""

    id: str
    """Id of the token, which is no secret."""
    name: str = Field(examples=["telegram bot"])
    """What it is for."""
    user: str = Field(examples=["ann"])
    """Requests with it are made as this user."""
    rights: Rights
    """At most those of the user's role."""
    created_at: Instant
    """When it was created."""
    expires_at: Instant | None = None
    """Null: never."""
    last_used_at: Instant | None = None
    """To the minute."""
    revoked_at: Instant | None = None
    """When it was revoked; null: it was not."""

    @classmethod
    def of(cls, token: Token) -> Self:
        return cls(
            id=token.id,
            name=token.name,
            user=token.user,
            rights=tuple(sorted(token.rights)),
            created_at=token.created_at,
            expires_at=token.expires_at,
            last_used_at=token.last_used_at,
            revoked_at=token.revoked_at,
        )

    def value(self) -> Token:
        return Token(
            id=self.id,
            name=self.name,
            user=self.user,
            rights=frozenset(self.rights),
            created_at=self.created_at,
            expires_at=self.expires_at,
            last_used_at=self.last_used_at,
            revoked_at=self.revoked_at,
        )


class CreatedTokenDocument(TokenDocument):
    """A new token."""

    secret: str = Field(examples=["sm_…"])
    """Send it as `Authorization: Bearer SECRET`. It cannot be shown again."""

    @classmethod
    def created(cls, created: CreatedToken) -> Self:
        return cls(secret=created.secret, **TokenDocument.of(created.token).model_dump())

    def created_token(self) -> CreatedToken:
        return CreatedToken(token=self.value(), secret=self.secret)


class NewTokenDocument(RequestDocument):
    """A token to create."""

    name: ShortText = Field(examples=["telegram bot"])
    """What it is for: 1 to 100 printable characters."""
    user: ShortText = Field(default=SINGLE_USER, examples=["ann"])
    """Who makes the requests that carry it; `me` is whoever asks."""
    rights: Rights | None = None
    """Null: all that the user's role has, or those of the token that you create it with."""
    expires_in_seconds: float | None = Field(default=None, gt=0, le=LONGEST_SECONDS, examples=[7_776_000])
    """Null: never."""

    @classmethod
    def of(cls, new: NewToken) -> Self:
        rights = None if new.rights == frozenset(Right) else sorted(new.rights)
        return cls.checked(name=new.name, user=new.user, rights=rights, expires_in_seconds=new.expires_in)

    def value(self, user: str) -> NewToken:
        rights = frozenset(Right) if self.rights is None else frozenset(self.rights)
        return NewToken(name=self.name, user=user, rights=rights, expires_in=self.expires_in_seconds)


class SignInLinkDocument(Document):
    """A link that signs a browser in, once."""

    url: str = Field(examples=["http://127.0.0.1:8080/sign-in#…"])
    """Open it in the browser."""
    code: str
    """The part after `#`."""
    user: str = Field(examples=["ann"])
    """The user that it signs in."""
    expires_at: Instant
    """Until then it can be used."""

    @classmethod
    def of(cls, link: SignInLink) -> Self:
        return cls(url=link.url, code=link.code, user=link.user, expires_at=link.expires_at)

    def value(self, url: str) -> SignInLink:
        return SignInLink(code=self.code, user=self.user, url=url, expires_at=self.expires_at)
