"""Users who get notifications, and how each of them wants to get them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.errors import NotFound
from stationmaster.model import Role, User
from stationmaster.store.bulk import insert_if_absent, upsert
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import users


class Users:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, user: User) -> None:
        """Add a user or change one."""
        with self._database.write() as connection:
            upsert(connection, users, [self._row(connection, user)], key=("name",))

    def add(self, user: User) -> bool:
        """Returns False, and changes nothing, if the name is taken."""
        with self._database.write() as connection:
            return insert_if_absent(connection, users, self._row(connection, user))

    def change(self, name: str, change: Callable[[User], User]) -> User | None:
        """Change a user as they are at this moment; None if there is no such user. `change` must not use the store."""
        if not is_storable(name):
            return None
        with self._database.write() as connection:
            query = sa.select(users).where(users.c.name == name).with_for_update()
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                return None
            changed = change(_user(row))
            connection.execute(users.update().where(users.c.name == name).values(_values(changed)))
        return changed

    def find(self, name: str) -> User | None:
        if not is_storable(name):
            return None
        with self._database.read() as connection:
            row = connection.execute(sa.select(users).where(users.c.name == name)).mappings().one_or_none()
        return None if row is None else _user(row)

    def listed(self) -> list[User]:
        with self._database.read() as connection:
            return [_user(row) for row in connection.execute(sa.select(users).order_by(users.c.name)).mappings()]

    def remove(self, name: str) -> None:
        """Remove a user; their inbox stays, their tokens and sessions end. Raises NotFound."""
        from stationmaster.store.access import end_access  # which few commands need

        with self._database.write() as connection:
            if not is_storable(name) or connection.execute(users.delete().where(users.c.name == name)).rowcount == 0:
                raise NotFound(f"there is no user {name}", hint="run `stationmaster users list` to see them")
            end_access(connection, name, self._database.now)

    def _row(self, connection: Connection, user: User) -> dict[str, Any]:
        now = connection.execute(sa.select(self._database.now)).scalar_one()
        return {**_values(user), "created_at": now}


def _values(user: User) -> dict[str, Any]:
    return {**dataclasses.asdict(user), "muted": dumps(list(user.muted)), "role": user.role.value}


def _user(row: RowMapping) -> User:
    return known_fields(User, {**row, "muted": tuple(loads(row["muted"])), "role": Role(row["role"])})
