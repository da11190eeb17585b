"""Training values by step, as read from the logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import StepReading
from stationmaster.store.bulk import append_rows
from stationmaster.store.codec import known_fields, shallow
from stationmaster.store.engine import Database
from stationmaster.store.tables import readings


class Readings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str, *, without_attempts: Collection[int] = ()) -> list[StepReading]:
        query = sa.select(readings).where(readings.c.job_id == job_id).order_by(readings.c.seq)
        if without_attempts:
            query = query.where(readings.c.attempt.not_in(without_attempts))
        with self._database.read() as connection:
            return [known_fields(StepReading, dict(row)) for row in connection.execute(query).mappings()]

    def count(self, job_id: str) -> int:
        query = sa.select(sa.func.count()).where(readings.c.job_id == job_id)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def numbered(self, job_id: str, *, after_seq: int = 0, limit: int = 1000) -> list[tuple[int, StepReading]]:
        """(sequence number, reading) pairs in the order they were written."""
        query = (
            sa.select(readings)
            .where(readings.c.job_id == job_id, readings.c.seq > after_seq)
            .order_by(readings.c.seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            found = connection.execute(query).mappings()
            return [(row["seq"], known_fields(StepReading, dict(row))) for row in found]

    def sampled(self, job_id: str, *, attempt: int, most: int = 2000) -> list[StepReading]:
        """About `most` readings of one attempt, evenly spaced."""
        values = {"b_job": job_id, "b_attempt": attempt, "b_most": most}
        with self._database.read() as connection:
            return [known_fields(StepReading, dict(row)) for row in connection.execute(_SAMPLED, values).mappings()]


_NUMBERED = (
    sa.select(
        readings,
        (sa.func.row_number().over(order_by=readings.c.seq) - 1).label("place"),
        sa.func.count().over().label("total"),
    )
    .where(
        readings.c.job_id == sa.bindparam("b_job"),
        readings.c.attempt == sa.bindparam("b_attempt", type_=sa.Integer),
    )
    .subquery()
)
_EVERY = (_NUMBERED.c.total - 1) // sa.bindparam("b_most", type_=sa.Integer) + 1
_SAMPLED = sa.select(_NUMBERED).where(_NUMBERED.c.place % _EVERY == 0).order_by(_NUMBERED.c.seq)


def rows(job_id: str, values: Iterable[StepReading]) -> list[dict[str, Any]]:
    return [{"job_id": job_id, **shallow(value)} for value in values]


def append(connection: Connection, made: Sequence[dict[str, Any]]) -> None:
    append_rows(connection, readings, made)
