"""Notifications: a user's inbox, and tests of the channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stationmaster.model import SINGLE_USER, Delivery, Note

__all__ = ["Delivery", "Note", "Notifications"]


class Notifications(Protocol):
    def count_unread(self, user: str = SINGLE_USER) -> int:
        """How many messages the user has not read yet; 0 for an unknown user."""

    def inbox(
        self, user: str = SINGLE_USER, *, with_read: bool = False, limit: int = 50, before: int | None = None
    ) -> Sequence[Note]:
        """The newest messages of a user or of `operators`, or those before the one with this id, oldest first; they
        stay unread.

        Raises NotFound for a user who is not known and has no messages; those of a removed user can still be read.
        """

    def mark_read(self, user: str, *, up_to: int) -> None:
        """All of the user's messages up to this id are read. Repeating it changes nothing. Raises NotFound as `inbox`
        does.
        """

    def try_channels(self, user: str, text: str) -> Sequence[Delivery]:
        """Send a text by every channel that leads to a user, and say which worked.

        Raises NotifyRefused where none leads to them, ConfigInvalid.
        """

    def try_operator_channels(self, text: str) -> Sequence[Delivery]:
        """The same for the operators; without channels of their own, for the single user. Raises ConfigInvalid."""
