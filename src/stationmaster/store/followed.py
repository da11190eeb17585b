"""How far somebody has followed a table whose rows only grow in number."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.store.engine import Database
from stationmaster.store.tables import followed
from stationmaster.store.upsert import insert_if_absent


class Followed:
    def __init__(self, database: Database) -> None:
        self._database = database

    def position(self, name: str) -> int:
        """The last number that needs no further look; 0 at first."""
        with self._database.read() as connection:
            found = connection.execute(sa.select(followed.c.seq).where(followed.c.name == name)).scalar_one_or_none()
        return int(found or 0)

    def advance(self, name: str, seq: int) -> None:
        """Never goes back, whoever says so."""
        with self._database.write() as connection:
            insert_if_absent(connection, followed, {"name": name, "seq": 0})
            connection.execute(followed.update().where(followed.c.name == name, followed.c.seq < seq).values(seq=seq))
