"""Thins a table for long storage: what a chart of some width shows of it stays, the rest goes.

In each pixel column of the chart every series keeps its lowest and its highest value. The other values become None,
which takes almost no room, and a row of which nothing is kept is dropped. Events and facts about the run stay whole.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from itertools import compress

from stationmaster.series.buckets import extreme_places
from stationmaster.series.schema import TABLES, Kind, required_columns
from stationmaster.series.table import NO_INTEGER, Column, Table

CHART_COLUMNS = 2000

#: The tables that can be thinned: the column that is their x, and the one whose values are series of their own.
_AXES: dict[str, tuple[str, str | None]] = {
    "StepMetric": ("step", None),
    "StepValue": ("step", "name"),
    "MetricsSample": ("timestamp", None),
    "GpuSample": ("timestamp", "gpu_index"),
    "ResourceSample": ("timestamp", None),
    "ProcessSample": ("timestamp", "pid"),
    "InstanceSample": ("timestamp", None),
}


def thinned(table: Table, *, columns: int = CHART_COLUMNS) -> Table:
    """Return the table with only what a chart of `columns` pixels shows of it."""
    if table.name not in _AXES or len(table) <= 2 * columns:
        return table
    x, series_column = _AXES[table.name]
    kept = _kept(table, x, series_column, columns)
    if not kept:  # rows of nothing but steps and times: no chart shows them, and none is more than another
        return table
    wanted = [any(flags) for flags in zip(*kept.values(), strict=True)]
    columns_left = {name: _with_gaps(table.columns[name], kept[name], wanted) for name in kept}
    return Table(table.name, {**table.picked(wanted).columns, **columns_left})


def _kept(table: Table, x: str, series_column: str | None, columns: int) -> dict[str, bytearray]:
    """Return a flag for each value of each measured column: whether it stays."""
    measured = [name for name in table.columns if _is_measured(table.name, name)]
    kept = {name: bytearray(len(table)) for name in measured}
    xs, ys = table.numbers(x), {name: table.numbers(name) for name in measured}
    for rows in _rows_of_each_series(table, series_column):
        rows.sort(key=xs.__getitem__)
        series_x = [xs[row] for row in rows]
        for name in measured:
            for place in extreme_places(series_x, [ys[name][row] for row in rows], columns=columns):
                kept[name][rows[place]] = True
            kept[name][rows[0]] = kept[name][rows[-1]] = True  # so that the range stays, too
    return kept


def _is_measured(table: str, name: str) -> bool:
    return TABLES[table][name] is not Kind.TEXT and name not in required_columns(table)


def _rows_of_each_series(table: Table, series_column: str | None) -> list[list[int]]:
    if series_column is None:
        return [list(range(len(table)))]
    rows = defaultdict(list)
    for row, key in enumerate(table.values(series_column)):
        rows[key].append(row)
    return list(rows.values())


def _with_gaps(held: Column, kept: bytearray, wanted: list[bool]) -> Column:
    assert not isinstance(held, tuple), "texts are not measured"
    missing = math.nan if held.typecode == "d" else NO_INTEGER
    values = (value if stays else missing for value, stays in zip(held, kept, strict=True))
    return array(held.typecode, compress(values, wanted))
