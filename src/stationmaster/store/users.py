"""Users who get notifications, and how each of them wants to get them."""

from __future__ import annotations

import dataclasses
import json

import sqlalchemy as sa
from sqlalchemy.engine import RowMapping

from stationmaster.errors import NotFound
from stationmaster.model import Role, User
from stationmaster.store.bulk import upsert
from stationmaster.store.codec import dumps, known_fields
from stationmaster.store.engine import Database
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import users


class Users:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, user: User) -> None:
        """Add a user or change one."""
        row = {**dataclasses.asdict(user), "muted": dumps(list(user.muted)), "role": user.role.value}
        with self._database.write() as connection:
            row["created_at"] = connection.execute(sa.select(self._database.now)).scalar_one()
            upsert(connection, users, [row], key=("name",))

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
        """Remove a user; their inbox stays. Raises NotFound."""
        with self._database.write() as connection:
            if connection.execute(users.delete().where(users.c.name == name)).rowcount == 0:
                raise NotFound(f"there is no user {name}", hint="run `stationmaster users list` to see them")


def _user(row: RowMapping) -> User:
    return known_fields(User, {**row, "muted": tuple(json.loads(row["muted"])), "role": Role(row["role"])})
