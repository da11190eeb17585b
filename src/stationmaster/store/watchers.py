"""Who is watching which job: workers poll a watched job more often."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from stationmaster.model import State
from stationmaster.store.bulk import upsert
from stationmaster.store.engine import Database
from stationmaster.store.tables import interests, jobs
from stationmaster.store.wake import announce


class Watchers:
    def __init__(self, database: Database) -> None:
        self._database = database

    @cached_property
    def _is_watched(self) -> sa.Select[Any]:
        """Asked at every poll of a training: building the query each time would cost more than running it."""
        is_current = interests.c.until > self._database.now
        return sa.select(interests.c.watcher).where(interests.c.job_id == sa.bindparam("job_id"), is_current).limit(1)

    def register(self, job_id: str, watcher: str, *, seconds: float) -> None:
        """Note that `watcher` watches the job for the next `seconds`; a running job becomes due at once."""
        self.register_several([job_id], watcher, seconds=seconds)

    def register_several(self, job_ids: Collection[str], watcher: str, *, seconds: float) -> None:
        """The same for several jobs, in one transaction."""
        now, ordered = self._database.now, sorted(job_ids)  # in the order in which others lock jobs too
        with self._database.write() as connection:
            until = connection.execute(sa.select(now + seconds)).scalar_one()
            rows = [{"job_id": job_id, "watcher": watcher, "until": until} for job_id in ordered]
            upsert(connection, interests, rows, key=("job_id", "watcher"))
            sleeping = (jobs.c.state == State.EXECUTING.value, jobs.c.due_at > now + 1.0)
            # One statement per job: a single one would lock them in an order of its own.
            woken = [
                connection.execute(jobs.update().where(jobs.c.id == job_id, *sleeping).values(due_at=now)).rowcount
                for job_id in ordered
            ]
            if any(woken):
                announce(connection)

    def is_watched(self, job_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(self._is_watched, {"job_id": job_id}).first() is not None


def watched_column(now: sa.ColumnElement[float]) -> sa.ColumnElement[bool]:
    """Whether the job of this row is watched, as a column of a query over `jobs`."""
    return sa.exists().where(interests.c.job_id == jobs.c.id, interests.c.until > now).correlate(jobs).label("watched")
