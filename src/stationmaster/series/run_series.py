"""The tables of a run as named series: `loss`, `reward`, `used_memory_gb`, `gpu0.utilization_percent`.

A name is that of the column, of the value in StepValue, or of the column after the number of the GPU.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stationmaster.errors import NotFound
from stationmaster.near_names import did_you_mean
from stationmaster.series.buckets import Points, reduce_to_columns
from stationmaster.series.schema import TABLES, Kind
from stationmaster.series.table import Table

Axis = Literal["step", "time"]

_NAMES_SHOWN = 40
_NO_VALUES = ("id", "step", "timestamp", "gpu_index")
_WITH_SERIES = ("StepMetric", "StepValue", "GpuSample", "MetricsSample", "ResourceSample", "InstanceSample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value of a run over steps and time; `steps` is None for what a machine measured. NaN: not measured."""

    name: str
    table: str
    column: str
    times: Sequence[float]
    values: Sequence[float]
    steps: Sequence[float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSeries:
    """A series as a chart shows it. `axis` is what `points.x` counts: steps, or seconds since 1970."""

    name: str
    table: str
    column: str
    axis: Axis
    count: int  # of all values in the range
    points: Points


class RunSeries:
    """All series of a run, made from its tables when they are asked for."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables = dict(tables)

    def names(self) -> list[str]:
        """Return the names of all series that have a value: those of steps first."""
        return [series.name for series in self.all()]

    def all(self) -> Iterator[Series]:
        """Yield every series that has a value. A name that exists twice gets its table in front the second time."""
        seen: set[str] = set()
        for table in _WITH_SERIES:
            if table in self.tables:
                for series in _series_of(self.tables[table]):
                    if any(value == value for value in series.values):
                        name = series.name if series.name not in seen else f"{table}.{series.name}"
                        seen.add(name)
                        yield series if name == series.name else _renamed(series, name)

    def drawn(
        self,
        names: Sequence[str] = (),
        *,
        axis: Axis = "step",
        start: float | None = None,
        end: float | None = None,
        columns: int,
    ) -> list[DrawnSeries]:
        """Return the series of these names, or all, with at most two points per column of the chart.

        What a machine measured has no steps: it is drawn over time, and a range of steps means their time. Names that
        the run does not have are left out.
        """
        drawn: list[DrawnSeries] = []
        for series in self.all():
            if names and series.name not in names and f"{series.table}.{series.column}" not in names:
                continue
            own_axis: Axis = "step" if axis == "step" and series.steps is not None else "time"
            own_start, own_end = (start, end) if own_axis == axis else self._times_of(start, end)
            x = series.steps if own_axis == "step" and series.steps is not None else _known_times(series.times)
            points = reduce_to_columns(x, series.values, columns=columns, start=own_start, end=own_end)
            drawn.append(
                DrawnSeries(
                    name=series.name,
                    table=series.table,
                    column=series.column,
                    axis=own_axis,
                    count=_count_within(x, own_start, own_end),
                    points=points,
                )
            )
        return drawn

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return those of the names that the run does not have."""
        known = {name for series in self.all() for name in (series.name, f"{series.table}.{series.column}")}
        return [name for name in names if name not in known]

    def require(self, names: Sequence[str]) -> None:
        """Raise NotFound for a name that the run does not have."""
        if missing := self.missing(names):
            there = ", ".join(self.names()[:_NAMES_SHOWN]) or "none"
            hint = did_you_mean(missing[0], self.names(), most=3) or f"there are {there}"
            raise NotFound(f"there is no series {missing[0]}", hint=hint)

    def within(self, *, axis: Axis = "step", start: float | None = None, end: float | None = None) -> RunSeries:
        """Return the run with only the rows of a range of steps or times; facts about the run stay."""
        if start is None and end is None:
            return self
        times = (start, end) if axis == "time" else self._times_of(start, end)
        kept: dict[str, Table] = {}
        for name, table in self.tables.items():
            by = "step" if axis == "step" and "step" in table.columns else "timestamp"
            if by in table.columns:
                low, high = (start, end) if by == "step" else times
                first, last = -math.inf if low is None else low, math.inf if high is None else high
                table = table.picked([first <= place <= last for place in table.numbers(by)])
            if len(table):
                kept[name] = table
        return RunSeries(kept)

    def _times_of(self, start: float | None, end: float | None) -> tuple[float | None, float | None]:
        """Return when the first step of a range began to count and the last one ended."""
        steps = self.tables.get("StepMetric") or self.tables.get("StepValue")
        if steps is None or (start is None and end is None):
            return None, None
        counted, times = steps.numbers("step"), steps.numbers("timestamp")
        first = None if start is None else bisect_left(counted, start)
        last = None if end is None else bisect_right(counted, end) - 1
        return (
            None if first is None else times[first] if first < len(times) else math.inf,
            None if last is None else times[last] if last >= 0 else -math.inf,
        )


def _series_of(table: Table) -> Iterator[Series]:
    if table.name == "StepValue":
        yield from _values_by_name(table)
    elif table.name == "GpuSample":
        for index in sorted({index for index in table.values("gpu_index") if index is not None}):
            yield from _columns_of(table.where("gpu_index", index), prefix=f"gpu{index}.")
    else:
        yield from _columns_of(table)


def _columns_of(table: Table, *, prefix: str = "") -> Iterator[Series]:
    times = table.numbers("timestamp")
    steps = table.numbers("step") if "step" in table.columns else None
    for column, kind in TABLES[table.name].items():
        if column in table.columns and kind is not Kind.TEXT and column not in _NO_VALUES:
            values = table.numbers(column)
            name = prefix + column
            yield Series(name=name, table=table.name, column=column, times=times, values=values, steps=steps)


def _values_by_name(table: Table) -> Iterator[Series]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(table.values("name")):
        places.setdefault(name, []).append(place)
    steps, times, values = table.numbers("step"), table.numbers("timestamp"), table.numbers("value")
    for name in sorted(places):
        own = places[name]
        yield Series(
            name=name,
            table=table.name,
            column=name,
            times=[times[place] for place in own],
            values=[values[place] for place in own],
            steps=[steps[place] for place in own],
        )


def _renamed(series: Series, name: str) -> Series:
    return Series(
        name=name,
        table=series.table,
        column=series.column,
        times=series.times,
        values=series.values,
        steps=series.steps,
    )


def _known_times(times: Sequence[float]) -> list[float]:
    """Return the times; 0 stands for an unknown time and becomes NaN, which no chart shows."""
    return [time if time > 0 else math.nan for time in times]


def _count_within(x: Sequence[float], start: float | None, end: float | None) -> int:
    if start is None and end is None:
        return len(x)
    low, high = -math.inf if start is None else start, math.inf if end is None else end
    return sum(low <= place <= high for place in x)
