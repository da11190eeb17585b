"""Workers' writes: about many jobs in one transaction, each guarded only by its lease's token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningUpdate

from stationmaster.errors import LeaseLost
from stationmaster.model import Desired, Job, State
from stationmaster.model.copying import changed
from stationmaster.store import (
    alerts,
    bad_machines,
    checkpoints,
    costs,
    events,
    logs,
    models,
    readings,
    rentals,
    runs,
    series,
)
from stationmaster.store.bulk import PreparedStatement
from stationmaster.store.engine import Database
from stationmaster.store.job_texts import Texts, texts_of
from stationmaster.store.ledger_posting import Posting
from stationmaster.store.storable_text import storable
from stationmaster.store.tables import jobs
from stationmaster.store.wake import announce_news
from stationmaster.store.watchers import watched_column
from stationmaster.store.writes import NewEvent, Write

#: Columns that workers write from the job's field of the same name, as it is.
_UNCHANGED = (
    "state_since", "seen_seq", "attempt", "failed_before_login", "failed_after_login", "deadline_at",
    "unreachable_since",
)  # fmt: skip
_UNCHANGED_PARAMETERS, _unchanged_values = tuple(f"b_{name}" for name in _UNCHANGED), attrgetter(*_UNCHANGED)
WORKER_COLUMNS = ("state", "outcome", "reason", "explanation", "progress", "memory", *_UNCHANGED)
"""Columns that workers write from the job; the update computes the others itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to change one job. `now` is the database's time when the job was read or last written."""

    job: Job
    token: int
    now: float
    watched: bool = False  # whether the job was being watched then
    texts: Texts | None = None  # None: not encoded yet


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedWrite:
    """A write about one job under its lease; it frees the lease unless `keep` is set."""

    lease: Lease
    write: Write
    keep: bool = False


class UpdatedRow(NamedTuple):
    """The row that the update of a job returns, in the order of its RETURNING."""

    version: int
    log_bytes: int
    series_bytes: int
    desired: str
    desired_seq: int
    saves_asked: int
    samples_asked: int
    now: float
    watched: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedWrite:
    """A write whose row in `jobs` has been updated."""

    job_id: str
    write: Write
    row: UpdatedRow


class LeasedWriter:
    def __init__(self, database: Database, *, log_cap_bytes: int, series_cap_bytes: int) -> None:
        self._database = database
        self._log_cap_bytes = log_cap_bytes
        self._series_cap_bytes = series_cap_bytes
        self._posting = Posting(database)

    @cached_property
    def _update(self) -> PreparedStatement:
        """Built on first use: processes that only read the store do not need it."""
        statement = _update_statement(self._database, series_cap_bytes=self._series_cap_bytes)
        return PreparedStatement(self._database.dialect, statement)

    def apply(self, connection: Connection, entries: Sequence[LeasedWrite]) -> list[Lease | None]:
        """Apply the writes; return the leases as they are now, None where the lease was lost: nothing was written."""
        after: list[Lease | None] = [None] * len(entries)
        # In the order of the job ids, as renewals lock them too: otherwise two transactions could deadlock.
        places = sorted(range(len(entries)), key=lambda place: entries[place].lease.job.id)
        ready = [self._prepare(connection, entries[place]) for place in places]
        written = []
        texts = [texts_of(entry.write.job, entry.lease.texts) for entry in ready]
        values = [job_values(entry, text) for entry, text in zip(ready, texts, strict=True)]
        updated = self._update.execute_returning(connection, values)
        for place, entry, text, columns in zip(places, ready, texts, updated, strict=True):
            if columns is not None:
                row = UpdatedRow(*columns)
                after[place] = _lease_after(entry, text, row)
                written.append(AppliedWrite(job_id=entry.lease.job.id, write=entry.write, row=row))
            elif entries[place].write.ledger:
                raise LeaseLost(
                    f"another worker has taken over job {entry.lease.job.id}"
                )  # rolls back the credits that were moved
        self._put_everything_else(connection, written)
        return after

    def _prepare(self, connection: Connection, entry: LeasedWrite) -> LeasedWrite:
        entry = self._move_credits(connection, entry)
        return replace(entry, write=_with_alert_events(connection, entry.write)) if entry.write.alerts else entry

    def _move_credits(self, connection: Connection, entry: LeasedWrite) -> LeasedWrite:
        """Move the write's credits; return the write to make, another one if the credits do not suffice."""
        if not entry.write.ledger:
            return entry
        return replace(entry, write=self._posting.apply(connection, entry.write))

    def _put_everything_else(self, connection: Connection, written: Sequence[AppliedWrite]) -> None:
        """Write what belongs to the jobs: one statement per table for what most jobs write; the rest is rare."""
        events.append(
            connection,
            [
                row
                for one in written
                for row in events.rows(one.job_id, one.write.events, version=one.row.version, now=one.row.now)
            ],
        )
        logs.append(
            connection,
            [
                row
                for one in written
                for row in logs.rows(
                    one.job_id,
                    one.write.logs,
                    log_bytes=one.row.log_bytes,
                    cap_bytes=self._log_cap_bytes,
                    now=one.row.now,
                )
            ],
        )
        readings.append(connection, [row for one in written for row in readings.rows(one.job_id, one.write.readings)])
        series.append(
            connection,
            [
                row
                for one in written
                for row in series.rows(
                    one.job_id,
                    one.write.series,
                    series_bytes=one.row.series_bytes,
                    cap_bytes=self._series_cap_bytes,
                )
            ],
        )
        rentals.put(connection, [rental for one in written for rental in one.write.rentals])
        costs.put(connection, [line for one in written for line in one.write.costs])
        checkpoints.put(
            connection, [row for one in written for row in checkpoints.rows_of(one.job_id, one.write.checkpoints)]
        )
        runs.put(
            connection,
            [runs.row_of(one.job_id, run, now=one.row.now) for one in written if (run := one.write.past_run)],
        )
        self._put_analyses(connection, [one for one in written if one.write.analysis is not None])
        over = [(one.job_id, kind) for one in written for kind in one.write.cleared_alerts]
        alerts.clear(connection, over, now=max((one.row.now for one in written), default=0.0))
        models.put(connection, [model for one in written for model in one.write.models])
        for one in written:
            if one.write.bad_machines:
                bad_machines.put(connection, one.write.bad_machines, now=one.row.now)
            if one.write.alerts:
                alerts.put(connection, one.write.alerts, now=one.row.now)
        if any(one.write.events or one.write.logs or one.write.readings for one in written):
            announce_news(connection)

    def _put_analyses(self, connection: Connection, written: Sequence[AppliedWrite]) -> None:
        if not written:
            return
        from stationmaster.store import analyses  # imports the analysis, which few writes have

        rows = [
            analyses.row_of(one.job_id, one.write.job.attempt, report, now=one.row.now)
            for one in written
            if (report := one.write.analysis)
        ]
        analyses.put(connection, rows)


def _lease_after(entry: LeasedWrite, texts: Texts, row: UpdatedRow) -> Lease:
    """The lease with everything that people may have changed meanwhile: none of it interrupts the next visit."""
    job = changed(
        entry.write.job,
        version=row.version,
        desired=Desired(row.desired),
        desired_seq=row.desired_seq,
        saves_asked=row.saves_asked,
        samples_asked=row.samples_asked,
    )
    return Lease(job=job, token=entry.lease.token, now=row.now, watched=bool(row.watched), texts=texts)


def _with_alert_events(connection: Connection, write: Write) -> Write:
    """The write with an event for each new alert, so that those who follow the job see it."""
    fresh = alerts.not_yet_open(connection, write.alerts)
    events = [NewEvent(kind="alert", payload={"alert": alert.kind, "message": alert.message}) for alert in fresh]
    return replace(write, events=(*write.events, *events))


def _update_statement(database: Database, *, series_cap_bytes: int) -> ReturningUpdate[Any]:
    """The only statement that moves a job: every column that a worker may change, guarded only by the lease token."""
    now = database.now
    parameters: dict[str, Any] = {name: sa.bindparam(f"b_{name}") for name in WORKER_COLUMNS}
    ended = sa.bindparam("b_ended", type_=sa.Boolean)
    keep = sa.bindparam("b_keep", type_=sa.Boolean)
    measured = sa.bindparam("b_measured_rows", type_=sa.BigInteger)
    is_over_cap = jobs.c.series_bytes >= sa.literal_column(str(series_cap_bytes), sa.BigInteger)
    return (
        jobs.update()
        .where(jobs.c.id == sa.bindparam("b_id"), jobs.c.lease_token == sa.bindparam("b_token"))
        .values(
            **parameters,
            lease_owner=sa.case((keep, jobs.c.lease_owner), else_=None),
            lease_until=sa.case((keep, jobs.c.lease_until), else_=None),
            version=jobs.c.version + sa.bindparam("b_new_events", type_=sa.BigInteger),
            log_bytes=jobs.c.log_bytes + sa.bindparam("b_logged", type_=sa.BigInteger),
            series_bytes=jobs.c.series_bytes + sa.bindparam("b_measured", type_=sa.BigInteger),
            series_dropped=jobs.c.series_dropped + sa.case((is_over_cap, measured), else_=0),
            due_at=now + sa.bindparam("b_due_in", type_=sa.Double),
            ended_at=sa.case((ended, sa.func.coalesce(jobs.c.ended_at, now)), else_=None),
        )
        .returning(
            jobs.c.version,
            jobs.c.log_bytes,
            jobs.c.series_bytes,
            jobs.c.desired,
            jobs.c.desired_seq,
            jobs.c.saves_asked,
            jobs.c.samples_asked,
            now.label("now"),
            watched_column(now),
        )
    )


def job_values(entry: LeasedWrite, texts: Texts) -> dict[str, Any]:
    """The parameters of `_update_statement`."""
    write, job = entry.write, entry.write.job
    return {
        "b_id": entry.lease.job.id,
        "b_token": entry.lease.token,
        "b_keep": entry.keep,
        "b_new_events": len(write.events),
        "b_logged": sum(len(chunk.data) for chunk in write.logs),
        "b_measured": sum(len(block.data) for block in write.series),
        "b_measured_rows": sum(block.row_count for block in write.series),
        "b_due_in": write.due_in,
        "b_ended": job.state is State.ENDED,
        "b_state": job.state.value,
        "b_outcome": job.outcome.value if job.outcome else None,
        "b_reason": job.reason.value if job.reason else None,
        "b_explanation": storable(job.explanation) if job.explanation else job.explanation,
        "b_progress": texts.progress[1],
        "b_memory": texts.memory,
        **dict(zip(_UNCHANGED_PARAMETERS, _unchanged_values(job), strict=True)),
    }
