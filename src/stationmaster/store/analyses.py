"""Analyses of trainings: one report per attempt that trained.

store.analyses.of_job(job_id)     # that of the latest attempt, whole
store.analyses.health_of(job_ids)  # health and first recommendation only
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.analysis.report import Report
from stationmaster.analysis.stored_report import report_from_json, report_to_json
from stationmaster.model import RunHealth
from stationmaster.store.bulk import upsert
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.storable_text import storable
from stationmaster.store.tables import analysis_reports, jobs

_PARTS = {
    "summary": "summary",
    "recommendations": "recommendations",
    "log_errors": "log_errors",
    "timeline": "metrics_timeline",
    "notes": "notes",
}
"""The columns that hold a part of the report as JSON, with the part's key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReport:
    attempt: int
    created_at: float
    report: Report


class Analyses:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str, *, attempt: int | None = None) -> StoredReport | None:
        """The report of this attempt, or of the latest one that has a report."""
        report = analysis_reports.c
        query = sa.select(analysis_reports).where(report.job_id == job_id).order_by(report.attempt.desc()).limit(1)
        if attempt is not None:
            query = query.where(report.attempt == attempt)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _stored(row)

    def health_of(self, job_ids: Collection[str]) -> dict[str, RunHealth]:
        """Health and first recommendation of the latest attempt, for the jobs that have a report."""
        report = analysis_reports.c
        query = (
            sa.select(report.job_id, report.attempt, report.health, report.headline)
            .where(report.job_id.in_(job_ids))
            .order_by(report.attempt)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        return {
            job_id: RunHealth(attempt=attempt, health=health, headline=headline)
            for job_id, attempt, health, headline in rows
        }

    def put(self, job_id: str, attempt: int, report: Report) -> bool:
        """Store a report in place of the attempt's earlier one; False if the job was removed meanwhile."""
        with self._database.write() as connection:
            there = sa.select(jobs.c.id).where(jobs.c.id == job_id).with_for_update()
            if connection.execute(there).first() is None:
                return False
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            put(connection, [row_of(job_id, attempt, report, now=now)])
        return True

    def clear_old(self, *, ended_before: float) -> int:
        """Delete the reports of jobs that ended before this time; return how many there were."""
        old = sa.select(jobs.c.id).where(jobs.c.ended_at < ended_before)
        with self._database.write() as connection:
            gone = connection.execute(analysis_reports.delete().where(analysis_reports.c.job_id.in_(old)))
        return int(gone.rowcount)


def row_of(job_id: str, attempt: int, report: Report, *, now: float) -> dict[str, Any]:
    data = report_to_json(report)
    first = report.first
    return {
        "job_id": job_id,
        "attempt": attempt,
        "created_at": now,
        "health": report.health.value,
        "headline": None if first is None else storable(first.title),
        **{column: dumps(data[key]) for column, key in _PARTS.items()},
    }


def put(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write reports; a second one of the same attempt replaces the first."""
    if rows:
        upsert(connection, analysis_reports, rows, key=("job_id", "attempt"))


def _stored(row: sa.RowMapping) -> StoredReport:
    parts = {key: loads(row[column]) for column, key in _PARTS.items()}
    report = report_from_json({**parts, "job_id": row["job_id"]})
    return StoredReport(attempt=row["attempt"], created_at=row["created_at"], report=report)
