"""Users, and what to set for one."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from stationmaster.model import Role, User
from stationmaster.money import MicroDollars, Unit
from stationmaster.station.users import ListedUser, UserChanges
from stationmaster.station.wire.document import Document, RequestDocument, ShortText

Kinds = Annotated[tuple[ShortText, ...], Field(max_length=100)]


class UserDocument(Document):
    """A user, and how notifications reach them."""

    name: str = Field(examples=["ann"])
    """Name of the user."""
    telegram_id: str | None = Field(default=None, examples=["123456789"])
    """Number of their Telegram chat."""
    discord_id: str | None = None
    """Number of their Discord account."""
    email: str | None = Field(default=None, examples=["ann@example.com"])
    """Their e-mail address."""
    inbox: bool = False
    """Whether a message in the inbox counts as delivered."""
    muted: tuple[str, ...] = Field(default=(), examples=[["epoch"]])
    """Kinds of notifications that are not sent."""
    quiet: str | None = Field(default=None, examples=["22:00-07:00"])
    """Hours without notifications that can wait."""
    time_zone: str = Field(default="UTC", examples=["Europe/Berlin"])
    """Of those hours."""
    role: Role = Role.USER
    """`admin` sees and changes everything, `user` trains, `viewer` only looks at what is theirs."""

    @classmethod
    def of(cls, user: User) -> Self:
        return cls(
            name=user.name,
            telegram_id=user.telegram_id,
            discord_id=user.discord_id,
            email=user.email,
            inbox=user.inbox,
            muted=user.muted,
            quiet=user.quiet,
            time_zone=user.time_zone,
            role=user.role,
        )

    def user(self) -> User:
        return User(
            name=self.name,
            telegram_id=self.telegram_id,
            discord_id=self.discord_id,
            email=self.email,
            inbox=self.inbox,
            muted=self.muted,
            quiet=self.quiet,
            time_zone=self.time_zone,
            role=self.role,
        )


class ListedUserDocument(UserDocument):
    """A user, with what they can spend."""

    credits: str | None = Field(default=None, examples=["$12.50"])
    """The balance as it is shown; null where credits are off."""
    balance_micros: int | None = Field(default=None, examples=[12_500_000])
    """The balance in micro-dollars; null where credits are off."""

    @classmethod
    def listed(cls, one: ListedUser, unit: Unit | None) -> Self:
        """`unit` is the one in which credits are shown; None where they are off."""
        shown = None if unit is None or one.balance is None else unit.show(one.balance)
        fields = UserDocument.of(one.user).model_dump()
        return cls(**fields, credits=shown, balance_micros=None if shown is None else one.balance)

    def value(self) -> ListedUser:
        return ListedUser(
            user=self.user(), balance=None if self.balance_micros is None else MicroDollars(self.balance_micros)
        )


class ChangesDocument(RequestDocument):
    """What to set for a user. What is left out or null stays as it is; an empty text removes a value."""

    telegram_id: ShortText | None = Field(default=None, examples=["123456789"])
    """Number of their Telegram chat."""
    discord_id: ShortText | None = None
    """Number of their Discord account."""
    email: ShortText | None = Field(default=None, examples=["ann@example.com"])
    """Their e-mail address."""
    inbox: bool | None = None
    """Whether a message in the inbox counts as delivered."""
    quiet: ShortText | None = Field(default=None, examples=["22:00-07:00"])
    """Hours without notifications that can wait."""
    time_zone: ShortText | None = Field(default=None, examples=["Europe/Berlin"])
    """Of those hours."""
    mute: Kinds = Field(default=(), examples=[["epoch"]])
    """Kinds of notifications to stop sending."""
    unmute: Kinds = Field(default=(), examples=[[]])
    """Kinds of notifications to send again."""
    role: Role | None = None
    """Only administrators may change it."""

    @classmethod
    def of(cls, changes: UserChanges) -> Self:
        return cls.checked(**_fields_of(changes))

    def value(self) -> UserChanges:
        return UserChanges(
            telegram_id=self.telegram_id,
            discord_id=self.discord_id,
            email=self.email,
            inbox=self.inbox,
            quiet=self.quiet,
            time_zone=self.time_zone,
            mute=self.mute,
            unmute=self.unmute,
            role=self.role,
        )


class NewUserDocument(ChangesDocument):
    """A user to add."""

    name: ShortText = Field(examples=["ann"])
    """1 to 100 printable characters; neither `me` nor `operators`."""

    @classmethod
    def named(cls, name: str, values: UserChanges) -> Self:
        return cls.checked(name=name, **_fields_of(values))


def _fields_of(changes: UserChanges) -> dict[str, object]:
    return {
        "telegram_id": changes.telegram_id,
        "discord_id": changes.discord_id,
        "email": changes.email,
        "inbox": changes.inbox,
        "quiet": changes.quiet,
        "time_zone": changes.time_zone,
        "mute": changes.mute,
        "unmute": changes.unmute,
        "role": changes.role,
    }
