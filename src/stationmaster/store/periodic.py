"""Periodic work: any worker may do it when it is due; claimed with a lease, as jobs are."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.errors import LeaseLost
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.engine import Database
from stationmaster.store.tables import periodic


class Periodic:
    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, name: str, owner: str, *, seconds: float) -> int | None:
        """Claim the work `name`; return a token if it is due and free, else None."""
        now = self._database.now
        take = (
            periodic.update()
            .where(
                periodic.c.name == name,
                periodic.c.due_at <= now,
                sa.or_(periodic.c.lease_until.is_(None), periodic.c.lease_until < now),
            )
            .values(lease_owner=owner, lease_token=periodic.c.lease_token + 1, lease_until=now + seconds)
            .returning(periodic.c.lease_token)
        )
        with self._database.write() as connection:
            insert_if_absent(connection, periodic, {"name": name, "due_at": 0.0, "lease_token": 0})
            token = connection.execute(take).scalar_one_or_none()
        return None if token is None else int(token)

    def finish(self, name: str, token: int, *, again_in: float) -> None:
        """Free the work and make it due again in `again_in` seconds. Raises LeaseLost."""
        now = self._database.now
        finish = (
            periodic.update()
            .where(periodic.c.name == name, periodic.c.lease_token == token)
            .values(due_at=now + again_in, last_run_at=now, lease_owner=None, lease_until=None)
        )
        with self._database.write() as connection:
            if connection.execute(finish).rowcount == 0:
                raise LeaseLost(f"another worker has taken over the periodic work {name}")

    def note_run(self, name: str) -> None:
        """Record that work which is not claimed here, such as a separate sweeper's, was done now."""
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            insert_if_absent(connection, periodic, {"name": name, "due_at": 0.0, "lease_token": 0})
            connection.execute(periodic.update().where(periodic.c.name == name).values(last_run_at=now))

    def last_run_at(self, *names: str) -> float | None:
        """When one of these works was last finished; None if never."""
        query = sa.select(sa.func.max(periodic.c.last_run_at)).where(periodic.c.name.in_(names))
        with self._database.read() as connection:
            found = connection.execute(query).scalar_one_or_none()
        return None if found is None else float(found)
