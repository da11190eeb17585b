"""Who works on which job: claimed with a fencing token, renewed by a heartbeat, written under the token alone."""

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
from stationmaster.store.leased_writes import Lease, LeasedWrite, LeasedWriter
from stationmaster.store.tables import jobs
from stationmaster.store.wake import announce
from stationmaster.store.watchers import watched_column
from stationmaster.store.writes import Write

__all__ = ["Lease", "LeasedWrite", "Leases", "Renewal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    token: int
    desired_seq: int
    deadline_passed: bool


class Leases:
    def __init__(self, database: Database, *, log_cap_bytes: int) -> None:
        self._database = database
        self._writes = LeasedWriter(database, log_cap_bytes=log_cap_bytes)

    @cached_property
    def _claim(self) -> ReturningUpdate[Any]:
        """Built once: SQLAlchemy takes longer to put it together than SQLite does to carry it out."""
        return _claim_statement(self._database)

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
        return [_lease(row) for row in rows]

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

    def write(self, entries: Sequence[LeasedWrite]) -> list[Lease | None]:
        """Write about several jobs in one transaction, each under its own lease.

        For each entry the lease as it is afterwards, with what people want of the job by now, or None: the lease is
        somebody else's, and nothing of the entry was written.
        """
        if len(entries) > 1 and any(entry.write.ledger for entry in entries):
            return [self._alone(entry) for entry in entries]  # credits move in transactions of their own
        with self._database.write() as connection:
            return self._writes.apply(connection, entries)

    def record(self, lease: Lease, write: Write) -> Lease:
        """Write state and intent before acting on them, and keep the lease. Raises LeaseLost."""
        return self._write_one(LeasedWrite(lease=lease, write=write, keep=True))

    def settle(self, lease: Lease, write: Write) -> None:
        """Write what was learnt and hand the lease back. Raises LeaseLost."""
        self._write_one(LeasedWrite(lease=lease, write=write))

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

    def _alone(self, entry: LeasedWrite) -> Lease | None:
        try:
            return self.write((entry,))[0]
        except LeaseLost:
            return None

    def _write_one(self, entry: LeasedWrite) -> Lease:
        (after,) = self.write((entry,))
        if after is None:
            raise LeaseLost(f"job {entry.lease.job.id} has been taken over; what was learnt is dropped")
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
        .returning(jobs, now.label("now"), watched_column(now))
    )


_FREE = (
    jobs.update()
    .where(jobs.c.id == sa.bindparam("b_id"), jobs.c.lease_token == sa.bindparam("b_token"))
    .values(lease_owner=None, lease_until=None)
)
