"""From a recording of another tool to the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stationmaster.series.schema import TABLES, Kind
from stationmaster.series.sources.columns import step_columns
from stationmaster.series.sources.recording import MachineValue, Recording, Scalar
from stationmaster.series.table import Table, table_of

UNKNOWN_TIME = 0.0
"""The timestamp of a row whose source has no times: every row needs one."""


def tables_of(recording: Recording) -> list[Table]:
    """The tables that have rows: one StepMetric row per step, and what StepMetric has no column for as StepValue.

    A value that was written again for the same step replaces the first one, as when a training was resumed.
    """
    columns = step_columns(dict.fromkeys(scalar.name for scalar in recording.scalars))
    steps = [scalar._replace(name=columns[scalar.name]) for scalar in recording.scalars if scalar.name in columns]
    others = [scalar for scalar in recording.scalars if scalar.name not in columns]
    made = [
        _table("StepMetric", _step_rows(steps)),
        _table("StepValue", _value_rows(others)),
        *(_table(name, _machine_rows(recording.machine, name)) for name in ("MetricsSample", "GpuSample")),
        _table("RunInfo", [{"key": key, "value": value} for key, value in recording.info.items()]),
    ]
    return [table for table in made if len(table)]


def _step_rows(scalars: Sequence[Scalar]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for name, step, at, value in scalars:
        row = rows.setdefault(step, {"step": step, "timestamp": UNKNOWN_TIME})
        row[name] = value
        if at is not None:
            row["timestamp"] = at
    return [rows[step] for step in sorted(rows)]


def _value_rows(scalars: Sequence[Scalar]) -> list[dict[str, Any]]:
    last = {(scalar.name, scalar.step): scalar for scalar in scalars}
    ordered = sorted(last.values(), key=lambda scalar: (scalar.step, scalar.name))
    return [
        {"step": step, "timestamp": UNKNOWN_TIME if at is None else at, "name": name, "value": value}
        for name, step, at, value in ordered
    ]


def _machine_rows(values: Sequence[MachineValue], table: str) -> list[dict[str, Any]]:
    rows: dict[tuple[float, int | None], dict[str, Any]] = {}
    for value in values:
        if value.table == table:
            row = rows.setdefault((value.at, value.gpu), {"timestamp": value.at, "gpu_index": value.gpu})
            row[value.column] = value.value
    return list(rows.values())


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    known = [column for column in TABLES[name] if column == "id" or any(column in row for row in rows)]
    whole = {column for column in known if TABLES[name][column] is Kind.INTEGER}
    columns: dict[str, Sequence[object]] = {"id": range(1, len(rows) + 1)}
    for column in known[1:]:
        values = [row.get(column) for row in rows]
        columns[column] = [None if value is None else round(value) for value in values] if column in whole else values
    return table_of(name, columns)
