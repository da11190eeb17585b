"""The inbox in the store, and the channels of the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from stationmaster.control.messages.recipients import OPERATORS
from stationmaster.model import SINGLE_USER, Delivery, Note
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.wrong_names import no_such_user


class LocalNotifications:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._users = installation.store.users
        self._inbox = installation.store.inbox

    def count_unread(self, user: str = SINGLE_USER) -> int:
        return self._inbox.count_unread(user)

    def inbox(
        self, user: str = SINGLE_USER, *, with_read: bool = False, limit: int = 50, before: int | None = None
    ) -> Sequence[Note]:
        self._require_known(user)
        return self._inbox.of_user(user, unread_only=not with_read, limit=limit, before=before)

    def mark_read(self, user: str, *, up_to: int) -> None:
        self._require_known(user)
        self._inbox.mark_read(user, up_to=up_to)

    def try_channels(self, user: str, text: str) -> Sequence[Delivery]:
        # Loads every channel and an HTTP client, while `stationmaster jobs` only counts unread messages.
        from stationmaster.station.local.channel_trial import try_channels

        return asyncio.run(try_channels(self._installation, user, text))

    def try_operator_channels(self, text: str) -> Sequence[Delivery]:
        from stationmaster.station.local.channel_trial import try_operator_channels

        return asyncio.run(try_operator_channels(self._installation, text))

    def _require_known(self, user: str) -> None:
        if user in (SINGLE_USER, OPERATORS) or self._users.find(user) is not None:
            return
        if not self._inbox.of_user(user, unread_only=False, limit=1):
            raise no_such_user(self._installation.store, user)
