"""Idempotency keys: which job a request made, so that repeating the request makes no other."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.engine import Database
from stationmaster.store.tables import submissions

_KEPT_SECONDS = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The first use of a key. The job has its id from then on, long before it is queued."""

    job_id: str
    body_sha256: str
    submitted_at: float | None = None  # None: not queued yet, as far as is known


class Submissions:
    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, owner: str, key_sha256: str, *, body_sha256: str, job_id: str) -> Submission:
        """Reserve the key for a job, or return what it was first used for. Keys older than 30 days are forgotten."""
        with self._database.write() as connection:
            now = float(connection.execute(sa.select(self._database.now)).scalar_one())
            connection.execute(submissions.delete().where(submissions.c.created_at < now - _KEPT_SECONDS))
            row = {"owner": owner, "key_sha256": key_sha256, "body_sha256": body_sha256, "job_id": job_id}
            insert_if_absent(connection, submissions, {**row, "created_at": now})
            first = sa.select(submissions).where(submissions.c.owner == owner, submissions.c.key_sha256 == key_sha256)
            found = connection.execute(first).mappings().one()
        return Submission(job_id=found["job_id"], body_sha256=found["body_sha256"], submitted_at=found["submitted_at"])


def mark_submitted(connection: Connection, job_id: str, *, now: float) -> None:
    """Note in the caller's transaction that the job is queued."""
    waiting = submissions.update().where(submissions.c.job_id == job_id, submissions.c.submitted_at.is_(None))
    connection.execute(waiting.values(submitted_at=now))
