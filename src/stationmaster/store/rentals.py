"""Rentals: every machine that may bill."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import Rental, RentalState
from stationmaster.store.bulk import read_rows, upsert
from stationmaster.store.codec import rental_from_row, rental_to_row
from stationmaster.store.engine import Database
from stationmaster.store.tables import rentals


class Rentals:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str) -> list[Rental]:
        return self._all(_OF_JOB, job_id=job_id)

    def of_jobs(self, job_ids: Collection[str]) -> dict[str, list[Rental]]:
        """The rentals of several jobs, by job id, in one query."""
        found: dict[str, list[Rental]] = {job_id: [] for job_id in job_ids}
        for rental in self._all(_OF_JOBS, job_ids=list(job_ids)):
            found[rental.job_id].append(rental)
        return found

    def by_label(self, label: str) -> Rental | None:
        return next(iter(self._all(_BY_LABEL, label=label)), None)

    def not_gone(self) -> list[Rental]:
        return self._all(_NOT_GONE)

    def count_others(self, rental: Rental) -> int:
        """Number of other machines of the same provider that were requested and are not known to be gone."""
        with self._database.read() as connection:
            values = {"provider": rental.provider, "label": rental.label}
            return int(connection.execute(_COUNT_OTHERS, values).scalar_one())

    def put_without_lease(self, changed: Rental) -> bool:
        """Write a rental of an ended job, which no lease guards; returns False, and writes nothing, if it is GONE.

        Only ever towards GONE, so concurrent writes agree.
        """
        with self._database.write() as connection:
            return put(connection, (changed,)) > 0

    def _all(self, query: sa.Select[Any], **values: str | list[str]) -> list[Rental]:
        with self._database.read() as connection:
            return [rental_from_row(row) for row in read_rows(connection, query, values)]


_IN_ORDER = sa.select(rentals).order_by(rentals.c.requested_at, rentals.c.label)
_OF_JOB = _IN_ORDER.where(rentals.c.job_id == sa.bindparam("job_id"))
_OF_JOBS = _IN_ORDER.where(rentals.c.job_id.in_(sa.bindparam("job_ids", expanding=True)))
_BY_LABEL = _IN_ORDER.where(rentals.c.label == sa.bindparam("label"))
_IS_NOT_GONE = rentals.c.state != RentalState.GONE.value
_NOT_GONE = _IN_ORDER.where(_IS_NOT_GONE)
_COUNT_OTHERS = (
    sa.select(sa.func.count())
    .select_from(rentals)
    .where(
        _IS_NOT_GONE,
        rentals.c.provider == sa.bindparam("provider"),
        rentals.c.label != sa.bindparam("label"),
        rentals.c.create_sent_at.is_not(None),
    )
)


def put(connection: Connection, changed: Iterable[Rental]) -> int:
    """Insert or replace rentals by label, and return how many were; a GONE rental never changes."""
    rows = [rental_to_row(rental) for rental in changed]
    return upsert(connection, rentals, rows, key=("label",), where=_IS_NOT_GONE) if rows else 0
