"""Leases on jobs: claimed with a fencing token, renewed by a heartbeat; workers write only under the token."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningUpdate

from stationmaster.errors import LeaseLost
from stationmaster.model import State
from stationmaster.store.codec import job_from_row
from stationmaster.store.engine import Database
from stationmaster.store.job_texts import texts_as_read
from stationmaster.store.jobs import is_served
from stationmaster.store.leased_writes import Lease, LeasedWrite, LeasedWriter
from stationmaster.store.tables import jobs, outbox, periodic
from stationmaster.store.wake import announce
from stationmaster.store.watchers import watched_column
from stationmaster.store.writes import Write

__all__ = ["MONITOR_OWNER", "Lease", "LeasedWrite", "Leases", "Renewal"]

MONITOR_OWNER = "monitor-"
"""How the name of an owner begins who is no worker and only sends its own messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    token: int
    desired_seq: int
    deadline_passed: bool


class Leases:
    def __init__(self, database: Database, *, log_cap_bytes: int, series_cap_bytes: int) -> None:
        self._database = database
        self._writes = LeasedWriter(database, log_cap_bytes=log_cap_bytes, series_cap_bytes=series_cap_bytes)

    @cached_property
    def _claim(self) -> ReturningUpdate[Any]:
        """Built once: SQLAlchemy takes longer to build it than SQLite takes to execute it."""
        return _claim_statement(self._database)

    @cached_property
    def _claim_served(self) -> ReturningUpdate[Any]:
        # A job that no worker serves can be cancelled all the same.
        return _claim_statement(self._database, sa.or_(is_served(), jobs.c.desired_seq != jobs.c.seen_seq))

    def claim(
        self,
        owner: str,
        *,
        limit: int,
        seconds: float,
        states: Sequence[State] = tuple(State),
        providers: Collection[str] | None = None,
        excluded_providers: Collection[str] = (),
    ) -> list[Lease]:
        """Take up to `limit` due jobs whose lease is free or expired; each gets a new token.

        Only jobs of `providers`, adopted trainings, and jobs of which a user wants something new; None: all.
        """
        values = {
            "b_owner": owner,
            "b_limit": limit,
            "b_seconds": seconds,
            "b_states": [str(state) for state in states],
            "b_excluded": list(excluded_providers),
        }
        if providers is not None:
            values["b_served"] = list(providers)
        with self._database.write() as connection:
            claim = self._claim if providers is None else self._claim_served
            rows = connection.execute(claim, values).mappings().all()
        return [_lease(row) for row in rows]

    def renew(self, owner: str, job_ids: Collection[str], *, seconds: float) -> dict[str, Renewal]:
        """Extend the leases of `owner` on these jobs; a job missing from the result is no longer ours.

        Pass only jobs that the worker is handling: a lease whose handler died must expire.
        """
        now = self._database.now
        # Locked in the order of their ids, as every batch of writes does: otherwise two transactions could deadlock.
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

    def write(self, entries: Sequence[LeasedWrite]) -> list[Lease | None]:
        """Write about several jobs in one transaction, each under its own lease.

        Returns for each entry the lease as it is now, with what the user wants of the job by now, or None if the lease
        was lost and nothing of the entry was written.
        """
        if len(entries) > 1 and any(entry.write.ledger for entry in entries):
            return [
                self._write_alone(entry) for entry in entries
            ]  # one transaction each, so that a failed one does not undo others
        with self._database.write() as connection:
            return self._writes.apply(connection, entries)

    def record(self, lease: Lease, write: Write) -> Lease:
        """Write state and intent before acting on them, and keep the lease. Raises LeaseLost."""
        return self._write_one(LeasedWrite(lease=lease, write=write, keep=True))

    def settle(self, lease: Lease, write: Write) -> None:
        """Write what was learnt and free the lease. Raises LeaseLost."""
        self._write_one(LeasedWrite(lease=lease, write=write))

    def free(self, lease: Lease) -> None:
        """Free a lease without writing anything; the job is due as before."""
        with self._database.write() as connection:
            connection.execute(_FREE, {"b_id": lease.job.id, "b_token": lease.token})
            announce(connection)

    def free_all(self) -> None:
        """Free the leases on jobs, periodic work and messages, for the only worker of a store: the last one has died.

        A monitor, which is no worker, keeps those on messages that it is sending.
        """
        with self._database.write() as connection:
            for leased in (jobs, periodic, outbox):
                connection.execute(
                    leased.update()
                    .where(leased.c.lease_until.is_not(None), leased.c.lease_owner.not_like(f"{MONITOR_OWNER}%"))
                    .values(lease_owner=None, lease_until=None, lease_token=leased.c.lease_token + 1)
                )

    def free_all_of(self, owner: str) -> None:
        """Free every lease of `owner`, for a worker that shuts down; the jobs are due as before."""
        with self._database.write() as connection:
            connection.execute(
                jobs.update().where(jobs.c.lease_owner == owner).values(lease_owner=None, lease_until=None)
            )
            announce(connection)

    def _write_alone(self, entry: LeasedWrite) -> Lease | None:
        try:
            return self.write((entry,))[0]
        except LeaseLost:
            return None

    def _write_one(self, entry: LeasedWrite) -> Lease:
        (after,) = self.write((entry,))
        if after is None:
            raise LeaseLost(f"another worker has taken over job {entry.lease.job.id}; this write is dropped")
        return after


def _lease(row: sa.RowMapping) -> Lease:
    job = job_from_row(row)
    return Lease(
        job=job,
        token=row["lease_token"],
        now=row["now"],
        watched=bool(row["watched"]),
        texts=texts_as_read(job, progress=row["progress"], memory=row["memory"]),
    )


def _claim_statement(database: Database, *further: sa.ColumnElement[bool]) -> ReturningUpdate[Any]:
    now = database.now
    due = (
        sa.select(jobs.c.id)
        .where(
            sa.or_(jobs.c.due_at <= now, jobs.c.desired_seq != jobs.c.seen_seq),
            sa.or_(jobs.c.lease_until.is_(None), jobs.c.lease_until < now),
            jobs.c.state.in_(sa.bindparam("b_states", expanding=True)),
            jobs.c.provider.not_in(sa.bindparam("b_excluded", expanding=True)),
            *further,
        )
        .order_by(jobs.c.due_at)
        .limit(sa.bindparam("b_limit", type_=sa.Integer))
        .with_for_update(skip_locked=True)  # SQLite ignores it: there a write transaction is the only writer
        # A CTE is evaluated once. PostgreSQL may evaluate a plain subquery repeatedly, each time with other rows free,
        # and so claim far more than the limit.
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
        .returning(jobs, now.label("now"), watched_column(now))
    )


_FREE = (
    jobs.update()
    .where(jobs.c.id == sa.bindparam("b_id"), jobs.c.lease_token == sa.bindparam("b_token"))
    .values(lease_owner=None, lease_until=None)
)
