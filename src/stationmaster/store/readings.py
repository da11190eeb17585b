"""Training values by step, as read from the logs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import StepReading
from stationmaster.store.bulk import append_rows, read_rows
from stationmaster.store.codec import known_fields, shallow
from stationmaster.store.engine import Database
from stationmaster.store.tables import readings

_MOST_STEPS = 500  # databases limit the number of values in a query


@dataclass(frozen=True, slots=True, kw_only=True)
class LossQuestion:
    """The losses of an attempt behind `after_seq`, in parts of `width` steps."""

    job_id: str
    attempt: int
    after_seq: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRange:
    """The lowest and the highest loss of one part, and the sequence number of its last reading."""

    job_id: str
    part: int
    low: float
    high: float
    last_seq: int


class Readings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str, *, without_attempts: Collection[int] = ()) -> list[StepReading]:
        values = {"b_job": job_id, "b_without": list(without_attempts)}
        with self._database.read() as connection:
            return [known_fields(StepReading, row) for row in read_rows(connection, _OF_JOB, values)]

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

    def latest(self, job_id: str, *, limit: int = 1000) -> list[tuple[int, StepReading]]:
        """The last (sequence number, reading) pairs, in the order they were written."""
        query = sa.select(readings).where(readings.c.job_id == job_id).order_by(readings.c.seq.desc()).limit(limit)
        with self._database.read() as connection:
            found = list(connection.execute(query).mappings())
        return [(row["seq"], known_fields(StepReading, dict(row))) for row in reversed(found)]

    def losses_at(self, job_id: str, steps: Collection[int]) -> dict[tuple[int, int], float]:
        """The loss by attempt and training step, for those of the steps at which one was read."""
        query = (
            sa.select(readings.c.attempt, readings.c.step, readings.c.loss)
            .where(readings.c.job_id == job_id, readings.c.step.in_(sorted(steps)[-_MOST_STEPS:]))
            .where(readings.c.loss.is_not(None))
            .order_by(readings.c.seq)
        )
        with self._database.read() as connection:
            return {(attempt, step): loss for attempt, step, loss in connection.execute(query)}

    def sampled(self, job_id: str, *, attempt: int, most: int = 2000) -> list[StepReading]:
        """About `most` readings of one attempt, evenly spaced."""
        values = {"b_job": job_id, "b_attempt": attempt, "b_most": most}
        with self._database.read() as connection:
            return [known_fields(StepReading, row) for row in read_rows(connection, _SAMPLED, values)]

    def loss_ranges(self, questions: Sequence[LossQuestion]) -> list[LossRange]:
        """The answers for several jobs in one query. A loss that is not a number counts in no range."""
        asked = sa.values(
            sa.column("job_id", sa.Text),
            sa.column("attempt", sa.Integer),
            sa.column("after_seq", sa.BigInteger),
            sa.column("width", sa.BigInteger),
            name="asked",
        ).data([(one.job_id, one.attempt, one.after_seq, one.width) for one in questions])
        one = asked.cte("asked")
        part = (readings.c.step // one.c.width).label("part")
        query = (
            sa.select(
                readings.c.job_id,
                part,
                sa.func.min(readings.c.loss).label("low"),
                sa.func.max(readings.c.loss).label("high"),
                sa.func.max(readings.c.seq).label("last_seq"),
            )
            .join_from(one, readings, sa.and_(readings.c.job_id == one.c.job_id, readings.c.seq > one.c.after_seq))
            .where(readings.c.attempt == one.c.attempt, readings.c.loss < _LARGEST)
            .group_by(readings.c.job_id, part)
            .order_by(readings.c.job_id, part)
        )
        with self._database.read() as connection:
            return [LossRange(**row) for row in connection.execute(query).mappings()]


_LARGEST = 1e300  # to PostgreSQL, NaN is greater than every number

_OF_JOB = (
    sa.select(readings)
    .where(
        readings.c.job_id == sa.bindparam("b_job"),
        readings.c.attempt.not_in(sa.bindparam("b_without", expanding=True)),
    )
    .order_by(readings.c.seq)
)

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
