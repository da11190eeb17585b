"""Series of jobs and watched machines. Values come as columns: a chart has many."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Self

from pydantic import Field

from stationmaster.series.buckets import Points
from stationmaster.series.table import Table, table_of
from stationmaster.station.metrics import (
    Contents,
    DrawnSeries,
    GpuSummary,
    Imported,
    RunSummary,
    SeriesSummary,
    StoredTable,
)
from stationmaster.station.wire.document import Document, Instant, Number

ROWS_HEADER = "Stationmaster-Rows"
"""The header of an exported file that has the number of its rows."""

_LAST_SECOND = 253_402_300_800.0  # of the year 9999
_TIMES = ("began_at", "last_at", "first_at")


class StoredTableDocument(Document):
    """One table of one attempt."""

    name: str = Field(examples=["StepMetric"])
    """Name of the table."""
    attempt: int | None = None
    """0: imported; null: of a file."""
    rows: int
    """How many rows it has."""
    first_at: Instant | None = None
    """Time of its first row."""
    last_at: Instant | None = None
    """Time of its last row."""
    thinned: bool = False
    """Whether only lowest and highest values are left."""

    @classmethod
    def of(cls, table: StoredTable) -> Self:
        return cls(**_with_known_times(dataclasses.asdict(table)))

    def value(self) -> StoredTable:
        return StoredTable(
            name=self.name,
            attempt=self.attempt or 0,
            rows=self.rows,
            first_at=self.first_at,
            last_at=self.last_at,
            thinned=self.thinned,
        )


class MetricsDocument(Document):
    """What was measured of a job or a machine."""

    subject: str
    """The job's id, or `PROVIDER/INSTANCE`."""
    tables: tuple[StoredTableDocument, ...]
    """What is stored, by table and attempt."""
    series: tuple[str, ...] = Field(examples=[["loss", "gpu0.memory_used_gb"]])
    """The names of all series."""
    from_log: bool
    """Whether the steps are read from the log, since the training recorded none."""
    dropped_rows: int
    """Beyond the limit of one job."""

    @classmethod
    def of(cls, contents: Contents) -> Self:
        return cls(
            subject=contents.subject,
            tables=tuple(StoredTableDocument.of(table) for table in contents.tables),
            series=contents.series,
            from_log=contents.from_log,
            dropped_rows=contents.dropped_rows,
        )

    def value(self) -> Contents:
        return Contents(
            subject=self.subject,
            tables=tuple(table.value() for table in self.tables),
            series=self.series,
            from_log=self.from_log,
            dropped_rows=self.dropped_rows,
        )


class SeriesDocument(Document):
    """A series as a chart shows it."""

    name: str = Field(examples=["loss"])
    """Name of the series."""
    table: str
    """The table that it is from."""
    column: str
    """The column of that table."""
    axis: Literal["step", "time"]
    """What `x` counts: steps, or seconds since 1970."""
    count: int
    """Of all values in the range."""
    exact: bool
    """Whether these are all points of the range; otherwise the lowest and highest of each column of the chart."""
    x: list[int | float]
    """Steps or times."""
    y: list[float | None]
    """As many as `x`; null where a value is missing."""

    @classmethod
    def of(cls, drawn: DrawnSeries) -> Self:
        return cls(
            name=drawn.name,
            table=drawn.table,
            column=drawn.column,
            axis=drawn.axis,
            count=drawn.count,
            exact=drawn.points.exact,
            x=drawn.points.x,
            y=drawn.points.y,
        )

    def value(self) -> DrawnSeries:
        points = Points(list(self.x), list(self.y), exact=self.exact)
        return DrawnSeries(
            name=self.name, table=self.table, column=self.column, axis=self.axis, count=self.count, points=points
        )


class ChartDocument(Document):
    """Series of a job or a machine."""

    subject: str
    """The job's id, or `PROVIDER/INSTANCE`."""
    series: tuple[SeriesDocument, ...]
    """The series that were asked for."""


class SeriesSummaryDocument(Document):
    """One series in numbers."""

    name: str
    """Name of the series."""
    table: str
    """The table that it is from."""
    count: int
    """Of its values, without the missing ones."""
    first: Number
    """Its first value."""
    last: Number
    """Its last value."""
    lowest: Number
    """Its lowest value."""
    highest: Number
    """Its highest value."""
    mean: Number
    """The mean of its values."""


class GpuSummaryDocument(Document):
    """One GPU in numbers; null where it was not measured. GB is 2³⁰ bytes."""

    index: int
    """Its number on the machine, from 0."""
    name: str | None
    """Name of the GPU."""
    memory_peak_gb: Number | None
    """The most memory in use."""
    memory_total_gb: Number | None
    """The memory that it has."""
    utilization_mean_percent: Number | None
    """Mean of its utilization."""
    temperature_peak_c: Number | None
    """The highest temperature, in °C."""


class EventCountDocument(Document):
    """How often something happened in a training."""

    kind: str = Field(examples=["checkpoint"])
    """What happened."""
    count: int
    """How often."""


class MetricsSummaryDocument(Document):
    """A run in numbers; null where nothing is known. Times are by the machine's clock."""

    began_at: Instant | None
    """Time of the first value."""
    last_at: Instant | None
    """Time of the last value."""
    steps: int
    """How many were recorded."""
    first_step: int | None
    """The first recorded step."""
    last_step: int | None
    """The last recorded step."""
    step_time_median: Number | None
    """Seconds."""
    step_time_p95: Number | None
    """Seconds."""
    gpus: tuple[GpuSummaryDocument, ...]
    """Each GPU in numbers."""
    memory_peak_gb: Number | None
    """Of the machine."""
    memory_total_gb: Number | None
    """The memory that the machine has."""
    events: tuple[EventCountDocument, ...]
    """How often each kind of event happened."""
    series: tuple[SeriesSummaryDocument, ...]
    """Each series in numbers."""

    @classmethod
    def of(cls, summary: RunSummary) -> Self:
        found = dataclasses.asdict(summary)
        events = [{"kind": kind, "count": count} for kind, count in summary.events]
        return cls.model_validate({**_with_known_times(found), "events": events})

    def value(self) -> RunSummary:
        found = self.model_dump(mode="python")
        return RunSummary(
            **{
                **found,
                "gpus": tuple(GpuSummary(**gpu) for gpu in found["gpus"]),
                "events": tuple((event.kind, event.count) for event in self.events),
                "series": tuple(SeriesSummary(**series) for series in found["series"]),
            }
        )


class RowsDocument(Document):
    """Rows of one table, by column."""

    table: str = Field(examples=["StepMetric"])
    """Name of the table."""
    columns: dict[str, list[int | float | str | None]]
    """Lists of the same length."""
    next: str | None = None
    """Pass this as `after` to get the rows behind these; null with the last ones."""

    @classmethod
    def of(cls, table: Table) -> Self:
        return cls(table=table.name, columns=table.as_lists())

    def value(self) -> Table:
        return table_of(self.table, self.columns)


class ImportedDocument(Document):
    """What was stored of a file."""

    kind: str = Field(examples=["an event file of TensorBoard"])
    """The file's format, in words."""
    rows: int
    """How many rows were stored."""
    series: tuple[str, ...]
    """The names of the series in them."""
    notes: tuple[str, ...]
    """What was left out."""

    @classmethod
    def of(cls, imported: Imported) -> Self:
        return cls(kind=imported.kind, rows=imported.rows, series=imported.series, notes=imported.notes)

    def value(self) -> Imported:
        return Imported(kind=self.kind, rows=self.rows, series=self.series, notes=self.notes)


def _with_known_times(found: dict[str, Any]) -> dict[str, Any]:
    """Without times that a strange machine made up: no calendar has them."""
    made_up = {name: None for name in _TIMES if name in found and not _is_known(found[name])}
    return {**found, **made_up}


def _is_known(seconds: float | None) -> bool:
    return seconds is not None and 0 < seconds < _LAST_SECOND
