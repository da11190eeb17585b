"""Files that trainings produced, and where each was verified."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import Checkpoint
from stationmaster.store.bulk import read_rows, upsert
from stationmaster.store.codec import checkpoint_from_row, shallow
from stationmaster.store.engine import Database
from stationmaster.store.tables import checkpoints


class Checkpoints:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str) -> list[Checkpoint]:
        with self._database.read() as connection:
            return [checkpoint_from_row(row) for row in read_rows(connection, _OF_JOB, {"b_job": job_id})]

    def of_jobs(self, job_ids: Collection[str]) -> dict[str, list[Checkpoint]]:
        """The files of several jobs, by job id, in one query."""
        found: dict[str, list[Checkpoint]] = {job_id: [] for job_id in job_ids}
        with self._database.read() as connection:
            for row in connection.execute(_OF_JOBS, {"b_jobs": list(job_ids)}).mappings():
                found[row["job_id"]].append(checkpoint_from_row(row))
        return found


def rows_of(job_id: str, changed: Iterable[Checkpoint]) -> list[dict[str, Any]]:
    return [{"job_id": job_id, **shallow(one)} for one in changed]


def put(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        upsert(connection, checkpoints, rows, key=("job_id", "attempt", "path"))


_IN_ORDER = sa.select(checkpoints).order_by(
    checkpoints.c.attempt, checkpoints.c.step.is_(None), checkpoints.c.step, checkpoints.c.path
)
_OF_JOB = _IN_ORDER.where(checkpoints.c.job_id == sa.bindparam("b_job"))
_OF_JOBS = _IN_ORDER.where(checkpoints.c.job_id.in_(sa.bindparam("b_jobs", expanding=True)))
