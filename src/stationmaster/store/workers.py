"""Workers of this store: each announces which providers it serves, and withdraws when it leaves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from stationmaster.model import ADOPTED_PREFIX
from stationmaster.store.bulk import upsert
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.tables import workers


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorker:
    owner: str
    version: str
    providers: frozenset[str]

    def serves(self, provider: str) -> bool:
        """Whether it takes jobs of the provider; a training that was adopted runs on any host."""
        return provider in self.providers or provider.startswith(ADOPTED_PREFIX)


class Workers:
    def __init__(self, database: Database) -> None:
        self._database = database

    def announce(self, owner: str, *, version: str, providers: Collection[str], seconds: float) -> None:
        """Record that `owner` works for the next `seconds`. A SQLite store has one worker: it replaces all others."""
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            others = workers.c.owner != owner if self._database.is_sqlite else workers.c.until < now
            connection.execute(workers.delete().where(others))
            row = {
                "owner": owner,
                "version": version,
                "providers": dumps(sorted(providers)),
                "until": now + seconds,
            }
            upsert(connection, workers, [row], key=("owner",))

    def withdraw(self, owner: str) -> None:
        with self._database.write() as connection:
            connection.execute(workers.delete().where(workers.c.owner == owner))

    def alive(self) -> list[LiveWorker]:
        """Those that announced themselves in time. Of a SQLite store the last: its lock tells whether it lives."""
        query = sa.select(workers).order_by(workers.c.owner)
        if not self._database.is_sqlite:
            query = query.where(workers.c.until >= self._database.now)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            LiveWorker(owner=row["owner"], version=row["version"], providers=frozenset(loads(row["providers"])))
            for row in rows
        ]
