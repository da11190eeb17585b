"""An inbox on a server."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import NotFound
from stationmaster.model import SINGLE_USER, Delivery, Note
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.notifications import DeliveryDocument, InboxDocument, ReadUpTo, TestMessage

_LARGEST_PAGE = 500


class HttpNotifications:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count_unread(self, user: str = SINGLE_USER) -> int:
        try:
            return self._connection.get(_path(user), InboxDocument, limit=1).unread
        except NotFound:
            return 0

    def inbox(
        self, user: str = SINGLE_USER, *, with_read: bool = False, limit: int = 50, before: int | None = None
    ) -> Sequence[Note]:
        notes: list[Note] = []
        while len(notes) < limit:
            wanted = min(limit - len(notes), _LARGEST_PAGE)
            page = self._connection.get(
                _path(user), InboxDocument, with_read=with_read, limit=wanted, before=before
            ).messages
            notes = [*(one.value() for one in page), *notes]
            if len(page) < wanted:
                break
            before = page[0].id
        return notes

    def mark_read(self, user: str, *, up_to: int) -> None:
        self._connection.send("POST", f"{_path(user)}/read", body=ReadUpTo.checked(up_to=up_to))

    def try_channels(self, user: str, text: str) -> Sequence[Delivery]:
        return self._try(f"{_path(user)}/test", text)

    def try_operator_channels(self, text: str) -> Sequence[Delivery]:
        return self._try("/api/inbox/test-operators", text)

    def _try(self, path: str, text: str) -> Sequence[Delivery]:
        found = self._connection.post(path, Page[DeliveryDocument], TestMessage.checked(text=text), patient=True)
        return [one.value() for one in found.items]


def _path(user: str) -> str:
    if not user:
        raise NotFound("the name of the user is empty", hint="run `stationmaster users list` to see them")
    return f"/api/users/{segment(user)}/inbox"
