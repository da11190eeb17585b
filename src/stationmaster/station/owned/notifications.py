"""A user's own inbox."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import SINGLE_USER, Caller, Delivery, Note, Right
from stationmaster.station.notifications import Notifications
from stationmaster.station.owned.rights import require


class OwnedNotifications:
    def __init__(self, caller: Caller, notifications: Notifications) -> None:
        self._caller = caller
        self._all = notifications

    def count_unread(self, user: str = SINGLE_USER) -> int:
        return self._all.count_unread(self._own(user))

    def inbox(
        self, user: str = SINGLE_USER, *, with_read: bool = False, limit: int = 50, before: int | None = None
    ) -> Sequence[Note]:
        return self._all.inbox(self._own(user), with_read=with_read, limit=limit, before=before)

    def mark_read(self, user: str, *, up_to: int) -> None:
        self._all.mark_read(self._own(user), up_to=up_to)

    def try_channels(self, user: str, text: str) -> Sequence[Delivery]:
        require(self._caller, Right.TRAIN)
        return self._all.try_channels(self._own(user), text)

    def try_operator_channels(self, text: str) -> Sequence[Delivery]:
        raise Forbidden("only administrators may send messages to the operators")

    def _own(self, user: str) -> str:
        if user != self._caller.user:
            raise NotFound(f"there is no user {user}", hint="run `stationmaster users list` to see them")
        return user
