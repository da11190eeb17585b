"""Who is watching which job: a worker looks more often while somebody does."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.model import State
from stationmaster.store.engine import Database
from stationmaster.store.tables import interests, jobs
from stationmaster.store.upsert import upsert
from stationmaster.store.wake import announce


class Interests:
    def __init__(self, database: Database) -> None:
        self._database = database
        # Asked at every look at a training: putting the question together would cost more than the answer.
        self._watched = (
            sa.select(interests.c.watcher)
            .where(interests.c.job_id == sa.bindparam("job_id"), interests.c.until > database.now)
            .limit(1)
        )

    def express(self, job_id: str, watcher: str, *, seconds: float) -> None:
        """Say that `watcher` looks at the job for a while; a worker that sleeps on it is woken."""
        now = self._database.now
        with self._database.write() as connection:
            until = connection.execute(sa.select(now + seconds)).scalar_one()
            upsert(
                connection,
                interests,
                [{"job_id": job_id, "watcher": watcher, "until": until}],
                key=("job_id", "watcher"),
            )
            woken = connection.execute(
                jobs.update()
                .where(jobs.c.id == job_id, jobs.c.state == State.EXECUTING.value, jobs.c.due_at > now + 1.0)
                .values(due_at=now)
            )
            if woken.rowcount:
                announce(connection)

    def watched(self, job_id: str) -> bool:
        with self._database.read() as connection:
            return connection.execute(self._watched, {"job_id": job_id}).first() is not None
