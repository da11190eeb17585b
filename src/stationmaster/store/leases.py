"""Who works on which job: claimed with a fencing token, renewed by a heartbeat, written under the token alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import ReturningUpdate

from stationmaster.errors import LeaseLost
from stationmaster.model import Desired, Job, State
from stationmaster.store import alerts, bad_machines, checkpoints, costs, events, logs, models, readings, rentals
from stationmaster.store.codec import dumps, job_from_row, progress_to_text
from stationmaster.store.engine import Database
from stationmaster.store.ledger_posting import Posting
from stationmaster.store.tables import interests, jobs
from stationmaster.store.wake import announce, announce_news
from stationmaster.store.writes import Told, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to change one job. `now` is the database's time when the job was read or last written."""

    job: Job
    token: int
    now: float
    watched: bool = False  # whether somebody looked at the job then


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is to be written about one job; the lease is handed back with it unless it is kept."""

    lease: Lease
    write: Write
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    token: int
    desired_seq: int
    deadline_passed: bool


class Leases:
    def __init__(self, database: Database, *, log_cap_bytes: int) -> None:
        self._database = database
        self._log_cap_bytes = log_cap_bytes
        self._posting = Posting(database)
        # Built once: SQLAlchemy takes longer to put these statements together than SQLite does to carry them out.
        self._claim = _claim_statement(database)
        self._keeping = _update_statement(database)
        self._handing_back = self._keeping.values(lease_owner=None, lease_until=None)

    def claim(
        self,
        owner: str,
        *,
        limit: int,
        seconds: float,
        states: Sequence[State] = tuple(State),
        excluded_providers: Collection[str] = (),
    ) -> list[Lease]:
        """Take up to `limit` due jobs whose lease is free or over; each gets a new token."""
        values = {
            "b_owner": owner,
            "b_limit": limit,
            "b_seconds": seconds,
            "b_states": [str(state) for state in states],
            "b_excluded": list(excluded_providers),
        }
        with self._database.write() as connection:
            rows = connection.execute(self._claim, values).mappings().all()
        return [
            Lease(job=job_from_row(row), token=row["lease_token"], now=row["now"], watched=bool(row["watched"]))
            for row in rows
        ]

    def renew(self, owner: str, job_ids: Collection[str], *, seconds: float) -> dict[str, Renewal]:
        """Prolong the leases of `owner` on these jobs at once; what is missing from the answer is no longer ours.

        Only what the worker knows that it holds: a lease whose handler broke off must run out.
        """
        now = self._database.now
        # Locked in the order of their ids, as every batch of writes does: two that wait for each other never end.
        held = (
            sa.select(jobs.c.id)
            .where(jobs.c.lease_owner == owner, jobs.c.id.in_(list(job_ids)))
            .order_by(jobs.c.id)
            .with_for_update()
            .cte("held")
        )
        prolong = (
            jobs.update()
            .where(jobs.c.id.in_(sa.select(held.c.id)), jobs.c.lease_owner == owner)
            .values(lease_until=now + seconds)
            .returning(jobs.c.id, jobs.c.lease_token, jobs.c.desired_seq, (jobs.c.deadline_at <= now).label("late"))
        )
        with self._database.write() as connection:
            rows = connection.execute(prolong).mappings().all()
        return {
            row["id"]: Renewal(
                token=row["lease_token"], desired_seq=row["desired_seq"], deadline_passed=bool(row["late"])
            )
            for row in rows
        }

    def write(self, entries: Sequence[Entry]) -> list[Lease | None]:
        """Write about several jobs in one transaction, each under its own lease.

        For each entry the lease as it is afterwards, with what people want of the job by now, or None: the lease is
        somebody else's, and nothing of the entry was written.
        """
        if len(entries) > 1 and any(entry.write.ledger for entry in entries):
            return [self._alone(entry) for entry in entries]  # credits move in transactions of their own
        after: list[Lease | None] = [None] * len(entries)
        in_order = sorted(range(len(entries)), key=lambda place: entries[place].lease.job.id)
        with self._database.write() as connection:
            written = []
            for place in in_order:
                entry = self._with_credits_moved(connection, entries[place])
                write = _with_alerts_told(connection, entry.write)
                row = self._update(connection, entry, write)
                if row is not None:
                    after[place] = _lease_after(entry, row)
                    written.append(Written(job_id=entry.lease.job.id, write=write, row=row))
                elif entries[place].write.ledger:
                    raise LeaseLost(f"job {entry.lease.job.id} has been taken over")  # its credits stay as they were
            self._put_the_rest(connection, written)
        return after

    def record(self, lease: Lease, write: Write) -> Lease:
        """Write state and intent before acting on them, and keep the lease. Raises LeaseLost."""
        return self._write_one(Entry(lease=lease, write=write, keep=True))

    def settle(self, lease: Lease, write: Write) -> None:
        """Write what was learnt and hand the lease back. Raises LeaseLost."""
        self._write_one(Entry(lease=lease, write=write))

    def free(self, lease: Lease) -> None:
        """Hand a lease back with nothing written; the job is due as it was."""
        with self._database.write() as connection:
            connection.execute(_FREE, {"b_id": lease.job.id, "b_token": lease.token})
            announce(connection)

    def take_from_the_dead(self) -> None:
        """Free every lease there is, for the one worker that a store may have: whoever holds one has died."""
        with self._database.write() as connection:
            connection.execute(
                jobs.update()
                .where(jobs.c.lease_until.is_not(None))
                .values(lease_owner=None, lease_until=None, lease_token=jobs.c.lease_token + 1)
            )

    def hand_back(self, owner: str) -> None:
        """Free every lease of `owner`, for a worker that goes home; the jobs stay due as they were."""
        with self._database.write() as connection:
            connection.execute(
                jobs.update().where(jobs.c.lease_owner == owner).values(lease_owner=None, lease_until=None)
            )
            announce(connection)

    def _alone(self, entry: Entry) -> Lease | None:
        try:
            return self.write((entry,))[0]
        except LeaseLost:
            return None

    def _with_credits_moved(self, connection: Connection, entry: Entry) -> Entry:
        """Where the credits do not suffice, what is written in its place."""
        if not entry.write.ledger:
            return entry
        return replace(entry, write=self._posting.entered(connection, entry.write))

    def _write_one(self, entry: Entry) -> Lease:
        (after,) = self.write((entry,))
        if after is None:
            raise LeaseLost(f"job {entry.lease.job.id} has been taken over; what was learnt is dropped")
        return after

    def _update(self, connection: Connection, entry: Entry, write: Write) -> sa.Row[Any] | None:
        statement = self._keeping if entry.keep else self._handing_back
        return connection.execute(statement, _job_values(entry.lease, write)).one_or_none()

    def _put_the_rest(self, connection: Connection, written: Sequence[Written]) -> None:
        """What every job writes goes together, one statement for all of them; the rest is rare."""
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
                for row in logs.rows(one.job_id, one.write.logs, one.row, cap_bytes=self._log_cap_bytes)
            ],
        )
        readings.append(connection, [row for one in written for row in readings.rows(one.job_id, one.write.readings)])
        rentals.put(connection, [rental for one in written for rental in one.write.rentals])
        costs.put(connection, [line for one in written for line in one.write.costs])
        for one in written:
            checkpoints.put(connection, one.job_id, one.write.checkpoints)
            models.put(connection, one.write.models)
            bad_machines.put(connection, one.write.bad_machines, now=one.row.now)
            alerts.clear(connection, one.job_id, one.write.cleared_alerts, now=one.row.now)
            alerts.put(connection, one.write.alerts, now=one.row.now)
        if any(one.write.events or one.write.logs for one in written):
            announce_news(connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A write whose job is updated; `row` has the job's new version, its log's length and the database's time."""

    job_id: str
    write: Write
    row: sa.Row[Any]


def _lease_after(entry: Entry, row: sa.Row[Any]) -> Lease:
    wanted = Desired(row.desired)
    job = replace(entry.write.job, version=row.version, desired=wanted, desired_seq=row.desired_seq)
    return replace(entry.lease, job=job, now=row.now, watched=bool(row.watched))


def _with_alerts_told(connection: Connection, write: Write) -> Write:
    """An alert that is new is an event of the job as well, so that whoever follows the job hears of it."""
    if not write.alerts:
        return write
    fresh = alerts.not_yet_open(connection, write.alerts)
    told = [Told(kind="alert", payload={"alert": alert.kind, "message": alert.message}) for alert in fresh]
    return replace(write, events=(*write.events, *told))


def _claim_statement(database: Database) -> ReturningUpdate[Any]:
    now = database.now
    due = (
        sa.select(jobs.c.id)
        .where(
            sa.or_(jobs.c.due_at <= now, jobs.c.desired_seq != jobs.c.seen_seq),
            sa.or_(jobs.c.lease_until.is_(None), jobs.c.lease_until < now),
            jobs.c.state.in_(sa.bindparam("b_states", expanding=True)),
            jobs.c.provider.not_in(sa.bindparam("b_excluded", expanding=True)),
        )
        .order_by(jobs.c.due_at)
        .limit(sa.bindparam("b_limit", type_=sa.Integer))
        .with_for_update(skip_locked=True)  # left out by SQLite, where the transaction holds the only pen
        # A table of its own, made once: PostgreSQL may carry out a plain subquery again and again, each time with
        # other rows free, and so claim far more than the limit.
        .cte("due")
    )
    return (
        jobs.update()
        .where(jobs.c.id.in_(sa.select(due.c.id)))
        .values(
            lease_owner=sa.bindparam("b_owner"),
            lease_token=jobs.c.lease_token + 1,
            lease_until=now + sa.bindparam("b_seconds", type_=sa.Double),
        )
        .returning(jobs, now.label("now"), _is_watched(now))
    )


def _is_watched(now: sa.ColumnElement[float]) -> sa.ColumnElement[bool]:
    return sa.exists().where(interests.c.job_id == jobs.c.id, interests.c.until > now).correlate(jobs).label("watched")


def _update_statement(database: Database) -> ReturningUpdate[Any]:
    """The one statement that moves a job: everything a worker may change, guarded by the lease token alone."""
    now = database.now
    parameters: dict[str, Any] = {
        name: sa.bindparam(f"b_{name}")
        for name in (
            "state", "state_since", "seen_seq", "outcome", "reason", "explanation", "attempt", "failed_before_login",
            "failed_after_login", "deadline_at", "unreachable_since", "progress", "memory",
        )
    }  # fmt: skip
    ended = sa.bindparam("b_ended", type_=sa.Boolean)
    return (
        jobs.update()
        .where(jobs.c.id == sa.bindparam("b_id"), jobs.c.lease_token == sa.bindparam("b_token"))
        .values(
            **parameters,
            version=jobs.c.version + sa.bindparam("b_told", type_=sa.BigInteger),
            log_bytes=jobs.c.log_bytes + sa.bindparam("b_logged", type_=sa.BigInteger),
            due_at=now + sa.bindparam("b_due_in", type_=sa.Double),
            ended_at=sa.case((ended, sa.func.coalesce(jobs.c.ended_at, now)), else_=None),
        )
        .returning(
            jobs.c.version, jobs.c.log_bytes, jobs.c.desired, jobs.c.desired_seq, now.label("now"), _is_watched(now)
        )
    )


_FREE = (
    jobs.update()
    .where(jobs.c.id == sa.bindparam("b_id"), jobs.c.lease_token == sa.bindparam("b_token"))
    .values(lease_owner=None, lease_until=None)
)


def _job_values(lease: Lease, write: Write) -> dict[str, Any]:
    job = write.job
    return {
        "b_id": lease.job.id,
        "b_token": lease.token,
        "b_told": len(write.events),
        "b_logged": sum(len(chunk.data) for chunk in write.logs),
        "b_due_in": write.due_in,
        "b_ended": job.state is State.ENDED,
        "b_state": job.state.value,
        "b_state_since": job.state_since,
        "b_seen_seq": job.seen_seq,
        "b_outcome": job.outcome.value if job.outcome else None,
        "b_reason": job.reason.value if job.reason else None,
        "b_explanation": job.explanation,
        "b_attempt": job.attempt,
        "b_failed_before_login": job.failed_before_login,
        "b_failed_after_login": job.failed_after_login,
        "b_deadline_at": job.deadline_at,
        "b_unreachable_since": job.unreachable_since,
        "b_progress": progress_to_text(job.progress),
        "b_memory": dumps(dict(job.memory)),
    }
