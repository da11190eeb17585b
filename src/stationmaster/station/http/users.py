"""The users of a server."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import NotFound
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.users import ListedUser, User, UserChanges, require_name
from stationmaster.station.wire.users import ChangesDocument, ListedUserDocument, NewUserDocument, UserDocument


class HttpUsers:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def listed(self) -> Sequence[ListedUser]:
        return [one.value() for one in self._connection.items("/api/users", ListedUserDocument)]

    def find(self, name: str) -> User:
        return self._connection.get(_path(name), UserDocument).user()

    def add(self, name: str, values: UserChanges) -> User:
        require_name(name)
        return self._connection.post("/api/users", UserDocument, NewUserDocument.named(name, values)).user()

    def change(self, name: str, changes: UserChanges) -> User:
        require_name(name)
        found = self._connection.send("PATCH", _path(name), body=ChangesDocument.of(changes))
        return self._connection.read(found, UserDocument).user()

    def remove(self, name: str) -> None:
        self._connection.send("DELETE", _path(name))


def _path(name: str) -> str:
    if not name:  # would be the address of the list
        raise NotFound("the name of the user is empty", hint="run `stationmaster users list` to see them")
    return f"/api/users/{segment(name)}"
