"""What was written since a reader last looked: the queries of those who follow many jobs at once.

Numbers of events are not in the order of commits on PostgreSQL: a transaction that began earlier may commit later. So
a reader remembers the numbers that it has not seen yet below its newest one, and asks for them again. Within one job
the numbers are in order: every writer has locked the job's row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stationmaster.model import Event, LogChunk, State, StepReading
from stationmaster.store.codec import event_from_row, known_fields
from stationmaster.store.engine import Database
from stationmaster.store.logs import chunk_from_row
from stationmaster.store.tables import events, jobs, log_chunks, readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a follower must know about a job."""

    owner: str | None
    version: int
    has_ended: bool
    is_executing: bool


class NewsRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    def newest_event(self) -> int:
        with self._database.read() as connection:
            return int(connection.execute(sa.select(sa.func.max(events.c.seq))).scalar() or 0)

    def ages(self, first: int, last: int) -> dict[int, float]:
        """How many seconds old the events from number `first` to `last` are, by number."""
        age = self._database.now - events.c.at
        query = sa.select(events.c.seq, age.label("age")).where(events.c.seq >= first, events.c.seq <= last)
        with self._database.read() as connection:
            return {row.seq: row.age for row in connection.execute(query)}

    def events(self, after: int, *, missing: Collection[int], limit: int) -> list[Event]:
        """Events of all jobs numbered above `after`, and those of the `missing` numbers that are there now."""
        wanted = events.c.seq > after
        if missing:
            wanted = sa.or_(wanted, events.c.seq.in_(sorted(missing)))
        query = sa.select(events).where(wanted).order_by(events.c.seq).limit(limit)
        with self._database.read() as connection:
            return [event_from_row(row) for row in connection.execute(query).mappings()]

    def newest_version(self, job_id: str) -> int:
        query = sa.select(sa.func.max(events.c.job_version)).where(events.c.job_id == job_id)
        return self._number(query)

    def newest_log(self, job_id: str) -> int:
        return self._number(sa.select(sa.func.max(log_chunks.c.seq)).where(log_chunks.c.job_id == job_id))

    def newest_reading(self, job_id: str) -> int:
        return self._number(sa.select(sa.func.max(readings.c.seq)).where(readings.c.job_id == job_id))

    def logs(self, after: Mapping[str, int], *, limit: int) -> list[tuple[str, int, LogChunk]]:
        """(job, number, piece) of these jobs, each job's above its own number."""
        return [(row["job_id"], row["seq"], chunk_from_row(row)) for row in self._of_jobs(log_chunks, after, limit)]

    def readings(self, after: Mapping[str, int], *, limit: int) -> list[tuple[str, int, StepReading]]:
        """(job, number, reading), as `logs` returns pieces."""
        found = self._of_jobs(readings, after, limit)
        return [(row["job_id"], row["seq"], known_fields(StepReading, dict(row))) for row in found]

    def standings(self, job_ids: Collection[str]) -> dict[str, Standing]:
        """Of those jobs that exist."""
        query = sa.select(jobs.c.id, jobs.c.owner, jobs.c.version, jobs.c.state).where(jobs.c.id.in_(sorted(job_ids)))
        with self._database.read() as connection:
            return {
                row.id: Standing(
                    owner=row.owner,
                    version=row.version,
                    has_ended=row.state == State.ENDED.value,
                    is_executing=row.state == State.EXECUTING.value,
                )
                for row in connection.execute(query)
            }

    def _of_jobs(self, table: sa.Table, after: Mapping[str, int], limit: int) -> list[Any]:
        if not after:
            return []
        columns = (sa.column("job_id", sa.Text), sa.column("number", sa.BigInteger))
        followed = sa.values(*columns, name="followed").data(sorted(after.items())).cte("followed_jobs")
        query = (
            sa.select(table)
            .join(followed, sa.and_(table.c.job_id == followed.c.job_id, table.c.seq > followed.c.number))
            .order_by(table.c.seq)
            .limit(limit)
        )
        with self._database.read() as connection:
            return list(connection.execute(query).mappings())

    def _number(self, query: sa.Select[Any]) -> int:
        with self._database.read() as connection:
            return int(connection.execute(query).scalar() or 0)
