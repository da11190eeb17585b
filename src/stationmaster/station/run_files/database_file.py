"""Writes a run's database as trackside would have left it on the machine, with the facts that only home knows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stationmaster.files import write_atomically
from stationmaster.series.schema import OWN_TABLES, TABLES, Kind, required_columns
from stationmaster.series.table import Table

if TYPE_CHECKING:
    from stationmaster.station.analysis import Analysis  # imports the rules, which no export needs

_SQL_KINDS = {Kind.REAL: "REAL", Kind.INTEGER: "INTEGER", Kind.TEXT: "TEXT"}
_REPORTS = """
CREATE TABLE AnalysisReport (
  id INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL, created_at REAL NOT NULL, summary JSON NOT NULL,
  recommendations JSON NOT NULL, log_errors JSON, peak_memory_gb REAL, health_score TEXT
)
"""


def write_database(
    path: Path,
    tables: Mapping[str, Table],
    *,
    job_id: str,
    info: Mapping[str, str],
    analysis: Analysis | None = None,
) -> int:
    """Write all tables of a run, empty where it has no rows, and return the number of rows.

    A fact in `info` replaces the machine's own of the same key: home's clock is the one that both ends share.
    """
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(_REPORTS)
        if analysis is not None:
            _write_report(connection, job_id, analysis)
        names = [name for name in TABLES if name != "RunInfo" and (name in tables or name not in OWN_TABLES)]
        rows = sum(_write_table(connection, name, tables, job_id) for name in names)
        connection.execute("CREATE TABLE RunInfo (job_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT)")
        facts = {**_facts(tables.get("RunInfo")), **info}
        connection.executemany("INSERT INTO RunInfo VALUES (?, ?, ?)", [(job_id, *fact) for fact in facts.items()])
        connection.commit()
        write_atomically(path, connection.serialize())
    finally:
        connection.close()
    return rows + len(facts)


def _write_report(connection: sqlite3.Connection, job_id: str, analysis: Analysis) -> None:
    data = analysis.report.as_json()
    parts = [json.dumps(data[name], ensure_ascii=False) for name in ("summary", "recommendations", "log_errors")]
    summary = analysis.report.summary
    values = (job_id, analysis.created_at, *parts, summary.peak_memory_gb, summary.health_score.value)
    columns = "job_id, created_at, summary, recommendations, log_errors, peak_memory_gb, health_score"
    connection.execute(f"INSERT INTO AnalysisReport ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def _write_table(connection: sqlite3.Connection, name: str, tables: Mapping[str, Table], job_id: str) -> int:
    needed = required_columns(name)
    columns = ["id INTEGER PRIMARY KEY AUTOINCREMENT", "job_id TEXT NOT NULL"]
    for column, kind in TABLES[name].items():
        if column != "id":
            columns.append(f"{column} {_SQL_KINDS[kind]}{' NOT NULL' if column in needed else ''}{_reference(column)}")
    connection.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    table = tables.get(name)
    if table is None:
        return 0
    held = {**table.as_lists(), "job_id": [job_id] * len(table)}
    if not _has_own_ids(table):  # several attempts used the same ones: counted anew
        held["id"] = [*range(1, len(table) + 1)]
    samples = tables.get("MetricsSample")
    if samples is not None and not _has_own_ids(samples):
        held.pop("memory_snapshot_id", None)  # refers to an id that is another one now
    insert = f"INSERT INTO {name} ({', '.join(held)}) VALUES ({', '.join('?' * len(held))})"
    connection.executemany(insert, zip(*held.values(), strict=True))
    return len(table)


def _has_own_ids(table: Table) -> bool:
    return len(set(table.values("id"))) == len(table)


def _reference(column: str) -> str:
    return " REFERENCES MetricsSample(id)" if column == "memory_snapshot_id" else ""


def _facts(table: Table | None) -> dict[str, str]:
    if table is None:
        return {}
    return {key: value for key, value in zip(table.values("key"), table.values("value"), strict=True) if value}
