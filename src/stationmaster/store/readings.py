"""Training values by step, as read from the logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import StepReading
from stationmaster.store.codec import known_fields, shallow
from stationmaster.store.engine import Database
from stationmaster.store.tables import readings


class Readings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str) -> list[StepReading]:
        query = sa.select(readings).where(readings.c.job_id == job_id).order_by(readings.c.seq)
        with self._database.read() as connection:
            return [known_fields(StepReading, dict(row)) for row in connection.execute(query).mappings()]

    def sampled(self, job_id: str, *, attempt: int, most: int = 2000) -> list[StepReading]:
        """About `most` readings of one attempt, evenly over it, however many there are."""
        place = sa.func.row_number().over(order_by=readings.c.seq)
        of_attempt = sa.and_(readings.c.job_id == job_id, readings.c.attempt == attempt)
        numbered = sa.select(readings, (place - 1).label("place")).where(of_attempt).subquery()
        with self._database.read() as connection:
            count = connection.execute(sa.select(sa.func.count()).where(of_attempt)).scalar_one()
            every = max(1, -(-count // most))
            query = sa.select(numbered).where(numbered.c.place % every == 0).order_by(numbered.c.seq)
            return [known_fields(StepReading, dict(row)) for row in connection.execute(query).mappings()]


def rows(job_id: str, values: Iterable[StepReading]) -> list[dict[str, Any]]:
    return [{"job_id": job_id, **shallow(value)} for value in values]


def append(connection: Connection, made: Sequence[dict[str, Any]]) -> None:
    if made:
        connection.execute(_INSERT, made)


_INSERT = readings.insert()
