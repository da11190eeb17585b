"""Users: the people who get notifications about their jobs, and their channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.errors import UserError
from stationmaster.model import Role, User
from stationmaster.money import MicroDollars

__all__ = ["ListedUser", "User", "UserChanges", "Users", "require_name"]

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChanges:
    """What to set for a user. None leaves a value as it is; an empty text removes it (a time zone stays)."""

    telegram_id: str | None = None
    discord_id: str | None = None
    email: str | None = None
    inbox: bool | None = None  # whether a notification in the inbox counts as delivered
    quiet: str | None = None  # hours, such as 22:00-07:00
    time_zone: str | None = None  # of those hours, such as Europe/Berlin
    mute: tuple[str, ...] = ()  # kinds of notifications to stop sending
    unmute: tuple[str, ...] = ()  # kinds of notifications to send again
    role: Role | None = None  # a new user has the role `user`


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedUser:
    user: User
    balance: MicroDollars | None = None  # what they can spend; None where credits are off


class Users(Protocol):
    def listed(self) -> Sequence[ListedUser]:
        """All users that were added, by name, without the single user of the settings."""

    def find(self, name: str) -> User:
        """Raises NotFound."""

    def add(self, name: str, values: UserChanges) -> User:
        """Raises UserError for a name that is taken, reserved or not printable, and for a value that is not valid;
        nothing is written then.
        """

    def change(self, name: str, changes: UserChanges) -> User:
        """Raises NotFound, and UserError as `add` does; nothing is written then."""

    def remove(self, name: str) -> None:
        """Remove a user; their jobs, credits and inbox stay, their tokens and sessions end. Raises NotFound."""


def require_name(name: str) -> None:
    """Raises UserError for a text that cannot be a user's name."""
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(
            f"a user's name has 1 to {_LONGEST_NAME} printable characters",
            hint="for example: stationmaster users add ann",
        )
