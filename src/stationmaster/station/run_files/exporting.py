"""Writes the series of a run as CSV, JSON, Parquet or SQLite, by the file's suffix."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from stationmaster.errors import NotFound, UserError
from stationmaster.files import write_atomically
from stationmaster.near_names import did_you_mean
from stationmaster.series.run_series import RunSeries
from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table
from stationmaster.station.run_files.database_file import write_database
from stationmaster.station.run_files.parquet_file import write_parquet

if TYPE_CHECKING:
    from stationmaster.station.analysis import Analysis  # imports the rules, which no export needs

LONG_COLUMNS = ("table", "name", "step", "timestamp", "value")
"""One row per value: the columns of the long form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A written file, and how many rows it has."""

    path: Path
    rows: int


def export_run(
    tables: Mapping[str, Table],
    path: Path,
    *,
    job_id: str,
    info: Mapping[str, str],
    table: str | None = None,
    analysis: Analysis | None = None,
) -> Exported:
    """Write the tables, or one of them. `info` are facts about the run that a database gets as rows of RunInfo.

    A database also gets the analysis, as a row of AnalysisReport.

    An existing file is replaced. Raises UserError for a suffix that is not known, NotFound for a table without rows.
    """
    write = _WRITERS[require_format(path)]
    if table is not None and table not in tables:
        there = ", ".join(tables) or "no values at all"
        raise NotFound(
            f"there is no table {table} with values", hint=did_you_mean(table, tables) or f"there are {there}"
        )
    wanted = dict(tables) if table is None else {table: tables[table]}
    try:
        rows = write(path, _Export(tables=wanted, one=table, job_id=job_id, info=info, analysis=analysis))
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}", hint="choose another place") from problem
    return Exported(path=path, rows=rows)


def require_format(path: Path) -> str:
    """The suffix of the file, which names its format. Raises UserError for one that is not known."""
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise UserError(f"{path.name} has no suffix that names a format", hint=f"end the name with one of {known}")
    return suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Export:
    tables: Mapping[str, Table]
    one: str | None  # the only table that is wanted
    job_id: str
    info: Mapping[str, str]
    analysis: Analysis | None


def long_rows(tables: Mapping[str, Table]) -> Iterator[tuple[str, str, int | None, float | None, float]]:
    """Yield every value of every series, as in LONG_COLUMNS."""
    for series in RunSeries(tables).all():
        steps = series.steps if series.steps is not None else [None] * len(series.values)
        for step, time, value in zip(steps, series.times, series.values, strict=True):
            if value == value:
                yield series.table, series.name, None if step is None else int(step), time if time > 0 else None, value


def _write_csv(path: Path, export: _Export) -> int:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    rows = 0
    if export.one is None:
        writer.writerow(LONG_COLUMNS)
        for row in long_rows(export.tables):
            writer.writerow(row)
            rows += 1
    else:
        rows = write_csv_rows(text, export.tables[export.one])
    write_atomically(path, text.getvalue().encode())
    return rows


def write_csv_rows(stream: TextIO, table: Table) -> int:
    """Write one table as CSV under a header, and return the number of its rows."""
    writer = csv.writer(stream, lineterminator="\n")
    columns = table.as_lists()
    writer.writerow(columns)
    writer.writerows(map(_safe_cell, values) for values in zip(*columns.values(), strict=True))
    return len(table)


def _safe_cell(value: Any) -> Any:
    """Return a text so that a spreadsheet does not run it as a formula: its writer may be a stranger."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def _write_json(path: Path, export: _Export) -> int:
    document = {
        "job": export.job_id,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "info": dict(export.info),
        "tables": {name: table.as_lists() for name, table in export.tables.items()},
    }
    write_atomically(path, json.dumps(document, ensure_ascii=False).encode())
    return sum(map(len, export.tables.values()))


def _write_parquet(path: Path, export: _Export) -> int:
    if export.one is not None:
        return write_parquet(path, TABLES[export.one], export.tables[export.one].as_lists())
    return write_parquet(path, None, dict(zip(LONG_COLUMNS, _columns(export.tables), strict=True)))


def _columns(tables: Mapping[str, Table]) -> list[list[Any]]:
    rows = list(long_rows(tables))
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in LONG_COLUMNS]


def _write_database(path: Path, export: _Export) -> int:
    return write_database(path, export.tables, job_id=export.job_id, info=export.info, analysis=export.analysis)


_WRITERS: dict[str, Callable[[Path, _Export], int]] = {
    ".csv": _write_csv,
    ".json": _write_json,
    ".parquet": _write_parquet,
    ".db": _write_database,
}
FORMATS = tuple(_WRITERS)
