"""Cost lines: what each rental cost, estimated until the provider's bill is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import CostLine, RentalState
from stationmaster.money import MicroDollars
from stationmaster.store.bulk import read_rows, upsert
from stationmaster.store.codec import cost_line_from_row, shallow
from stationmaster.store.engine import Database
from stationmaster.store.ownership import ids_of_owner
from stationmaster.store.tables import cost_lines, rentals

KINDS_OF_PAID_TIME = ("training_started", "stall_flagged", "stall_cleared", "state")
"""Events that show which part of a cost was training, stall or idle time; kept as long as the cost line."""


class Costs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str) -> list[CostLine]:
        with self._database.read() as connection:
            return [cost_line_from_row(row) for row in read_rows(connection, _OF_JOB, {"job_id": job_id})]

    def of_jobs(self, job_ids: Collection[str]) -> dict[str, list[CostLine]]:
        """The lines of several jobs, by job id, in one query."""
        found: dict[str, list[CostLine]] = {job_id: [] for job_id in job_ids}
        with self._database.read() as connection:
            for row in read_rows(connection, _OF_JOBS, {"job_ids": list(job_ids)}):
                found[row["job_id"]].append(cost_line_from_row(row))
        return found

    def listed(
        self,
        *,
        owner: str | None = None,
        after: tuple[float, str, str] | None = None,
        limit: int | None = None,
    ) -> list[CostLine]:
        """All cost lines or one user's, oldest first, those of removed jobs included.

        With `after`, those behind the line that began then, of that rental and kind.
        """
        line = cost_lines.c
        query = sa.select(cost_lines).order_by(line.started_at, line.rental_label, line.kind).limit(limit)
        if owner is not None:
            query = query.where(line.job_id.in_(ids_of_owner(owner)))
        if after is not None:
            at, label, kind = after
            same_rental = sa.and_(line.rental_label == label, line.kind > kind)
            query = query.where(
                line.started_at >= at, sa.or_(line.started_at > at, line.rental_label > label, same_rental)
            )
        with self._database.read() as connection:
            return [cost_line_from_row(row) for row in connection.execute(query).mappings()]

    def awaiting_charges(self, *, ended_before: float) -> list[CostLine]:
        """Closed lines of gone machines that are still our own estimate."""
        lives = sa.exists().where(rentals.c.label == cost_lines.c.rental_label, rentals.c.state != RentalState.GONE)
        query = sa.select(cost_lines).where(
            cost_lines.c.source == "estimate", cost_lines.c.ended_at < ended_before, ~lives
        )
        with self._database.read() as connection:
            return [cost_line_from_row(row) for row in connection.execute(query).mappings()]

    def rate_now(self) -> MicroDollars:
        """What all rented machines together cost per hour now."""
        query = sa.select(sa.func.coalesce(sa.func.sum(cost_lines.c.rate_per_hour), 0)).where(
            cost_lines.c.ended_at.is_(None)
        )
        with self._database.read() as connection:
            return MicroDollars(int(connection.execute(query).scalar_one()))

    def closed_total(self, *, owner: str | None = None) -> MicroDollars:
        """What all machines cost that no longer do, those of removed jobs included."""
        query = sa.select(sa.func.coalesce(sa.func.sum(cost_lines.c.amount), 0)).where(
            cost_lines.c.ended_at.is_not(None)
        )
        if owner is not None:
            query = query.where(cost_lines.c.job_id.in_(ids_of_owner(owner)))
        with self._database.read() as connection:
            return MicroDollars(int(connection.execute(query).scalar_one()))

    def between(self, start: float, end: float, *, owner: str | None = None) -> list[tuple[CostLine, str | None]]:
        """Lines that cost something between two times, open ones included, with the provider of their machine."""
        line = cost_lines.c
        query = (
            sa.select(cost_lines, rentals.c.provider)
            .join(rentals, rentals.c.label == line.rental_label, isouter=True)
            .where(line.started_at < end, sa.or_(line.ended_at.is_(None), line.ended_at >= start))
            .order_by(line.started_at, line.rental_label, line.kind)
        )
        if owner is not None:
            query = query.where(line.job_id.in_(ids_of_owner(owner)))
        with self._database.read() as connection:
            return [(cost_line_from_row(row), row["provider"]) for row in connection.execute(query).mappings()]

    def reconcile(self, lines: Iterable[CostLine]) -> None:
        """Replace estimates by the provider's own figures, all of a rental's lines in one transaction."""
        with self._database.write() as connection:
            put(connection, lines)

    def put_without_lease(self, line: CostLine) -> None:
        """Write a cost line of an ended job, which no lease guards."""
        with self._database.write() as connection:
            put(connection, (line,))


def put(connection: Connection, lines: Iterable[CostLine]) -> None:
    rows = [shallow(line) for line in lines]
    if rows:
        upsert(connection, cost_lines, rows, key=("rental_label", "kind"), where=_MAY_CHANGE)


_IN_ORDER = sa.select(cost_lines).order_by(cost_lines.c.started_at, cost_lines.c.rental_label, cost_lines.c.kind)
_OF_JOB = _IN_ORDER.where(cost_lines.c.job_id == sa.bindparam("job_id"))
_OF_JOBS = _IN_ORDER.where(cost_lines.c.job_id.in_(sa.bindparam("job_ids", expanding=True)))
# The provider's figures are final, and a late look of the sweep must not reopen a closed line.
_MAY_CHANGE = sa.and_(
    cost_lines.c.source != "provider",
    sa.or_(cost_lines.c.ended_at.is_(None), sa.literal_column("excluded.ended_at").is_not(None)),
)
