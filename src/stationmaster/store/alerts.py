"""Alerts: raised once per job and kind until cleared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import Alert
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.tables import alerts


class Alerts:
    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, job_id: str | None = None) -> list[Alert]:
        query = sa.select(alerts).where(alerts.c.cleared_at.is_(None)).order_by(alerts.c.seq)
        if job_id is not None:
            query = query.where(alerts.c.job_id == job_id)
        with self._database.read() as connection:
            return [known_fields(Alert, dict(row)) for row in connection.execute(query).mappings()]

    def open_of_jobs(self, job_ids: Collection[str]) -> dict[str, list[Alert]]:
        """The open alerts of several jobs, by job id, in one query."""
        found: dict[str, list[Alert]] = {job_id: [] for job_id in job_ids}
        of_jobs = alerts.c.job_id.in_(list(job_ids))
        query = sa.select(alerts).where(alerts.c.cleared_at.is_(None), of_jobs).order_by(alerts.c.seq)
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found[row["job_id"]].append(known_fields(Alert, dict(row)))
        return found

    def after(self, seq: int, *, limit: int = 500) -> list[tuple[int, Alert]]:
        """Alerts with a number above `seq`, in order, cleared ones included."""
        query = sa.select(alerts).where(alerts.c.seq > seq).order_by(alerts.c.seq).limit(limit)
        with self._database.read() as connection:
            return [(row["seq"], known_fields(Alert, dict(row))) for row in connection.execute(query).mappings()]

    def raise_without_lease(self, alert: Alert) -> None:
        """Raise an alert where no lease guards the job."""
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            put(connection, (alert,), now=now)

    def clear_without_lease(self, kind: str) -> None:
        """Clear every open alert of a kind where no lease guards the job."""
        with self._database.write() as connection:
            open_ones = (alerts.c.kind == kind, alerts.c.cleared_at.is_(None))
            connection.execute(alerts.update().where(*open_ones).values(cleared_at=self._database.now))


def put(connection: Connection, raised: Iterable[Alert], *, now: float) -> None:
    """Raise alerts, except those that are open already."""
    for alert in not_yet_open(connection, raised):
        connection.execute(alerts.insert().values(job_id=alert.job_id, kind=alert.kind, message=alert.message, at=now))


def not_yet_open(connection: Connection, raised: Iterable[Alert]) -> list[Alert]:
    """Those of `raised` that are not open yet, one per job and kind."""
    distinct = {(alert.job_id, alert.kind): alert for alert in reversed(list(raised))}
    return [alert for alert in distinct.values() if connection.execute(_open_like(alert)).first() is None]


def _open_like(alert: Alert) -> sa.Select[tuple[int]]:
    same = alerts.c.job_id.is_(None) if alert.job_id is None else alerts.c.job_id == alert.job_id
    return sa.select(alerts.c.seq).where(same, alerts.c.kind == alert.kind, alerts.c.cleared_at.is_(None))


def clear(connection: Connection, over: Sequence[tuple[str, str]], *, now: float) -> None:
    """Clear alerts by job and kind; most of them were never raised."""
    if over:
        connection.execute(_CLEAR, {"b_over": over, "b_now": now})


_CLEAR = (
    alerts.update()
    .where(
        sa.tuple_(alerts.c.job_id, alerts.c.kind).in_(sa.bindparam("b_over", expanding=True)),
        alerts.c.cleared_at.is_(None),
    )
    .values(cleared_at=sa.bindparam("b_now"))
)
