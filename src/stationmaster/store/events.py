"""Events: appended in the transaction of the change they describe, numbered per job by the job's version."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import SINGLE_USER, Event
from stationmaster.store.bulk import append_rows, insert_if_absent, read_rows
from stationmaster.store.codec import event_from_row
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps
from stationmaster.store.tables import events, followed, jobs
from stationmaster.store.writes import NewEvent


class Events:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str, *, after_version: int = 0, limit: int = 1000) -> list[Event]:
        """A job's events in order. Versions have no gaps, so a reader that follows them misses nothing."""
        query = (
            sa.select(events)
            .where(events.c.job_id == job_id, events.c.job_version > after_version)
            .order_by(events.c.job_version)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [event_from_row(row) for row in connection.execute(query).mappings()]

    def of_jobs(self, job_ids: Collection[str], *, kinds: Sequence[str]) -> dict[str, list[Event]]:
        """The events of these kinds of several jobs, by job id and in order, in one query."""
        found: dict[str, list[Event]] = {job_id: [] for job_id in job_ids}
        values = {"b_jobs": list(job_ids), "b_kinds": list(kinds)}
        with self._database.read() as connection:
            for row in read_rows(connection, _OF_JOBS, values):
                found[row["job_id"]].append(event_from_row(row))
        return found

    def after(
        self, seq: int, *, kinds: Sequence[str] | None = None, owner: str | None = None, limit: int = 500
    ) -> list[Event]:
        """Events of all jobs numbered above `seq`. Numbers are not in commit order: readers must look back a little.

        With an `owner` only those of their jobs.
        """
        query = sa.select(events).where(events.c.seq > seq).order_by(events.c.seq).limit(limit)
        if kinds is not None:
            query = query.where(events.c.kind.in_(kinds))
        if owner is not None:
            theirs = jobs.c.owner == owner
            if owner == SINGLE_USER:
                theirs = sa.or_(theirs, jobs.c.owner.is_(None))
            query = query.join(jobs, jobs.c.id == events.c.job_id).where(theirs)
        with self._database.read() as connection:
            return [event_from_row(row) for row in connection.execute(query).mappings()]


class Cursors:
    """How far each named reader has read a table whose rows are numbered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def position(self, name: str) -> int:
        """The last number that the reader need not read again; 0 at first."""
        with self._database.read() as connection:
            found = connection.execute(sa.select(followed.c.seq).where(followed.c.name == name)).scalar_one_or_none()
        return int(found or 0)

    def advance(self, name: str, seq: int) -> None:
        """Move the reader forward to `seq`; it never moves back, even if a slower process asks for it."""
        with self._database.write() as connection:
            insert_if_absent(connection, followed, {"name": name, "seq": 0})
            connection.execute(followed.update().where(followed.c.name == name, followed.c.seq < seq).values(seq=seq))


_OF_JOBS = (
    sa.select(events)
    .where(
        events.c.job_id.in_(sa.bindparam("b_jobs", expanding=True)),
        events.c.kind.in_(sa.bindparam("b_kinds", expanding=True)),
    )
    .order_by(events.c.job_id, events.c.job_version)
)


def rows(job_id: str, new: Sequence[NewEvent], *, version: int, now: float) -> list[dict[str, Any]]:
    """Rows for events; the last one gets `version`, which the caller has already written to the job's row."""
    first = version - len(new) + 1
    return [
        {"job_id": job_id, "job_version": first + n, "kind": one.kind, "payload": dumps(dict(one.payload)), "at": now}
        for n, one in enumerate(new)
    ]


def append(connection: Connection, made: Sequence[dict[str, Any]]) -> None:
    append_rows(connection, events, made)
