"""The questions about series and their answers, which are the same for a job and for a watched machine."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from stationmaster.api.conditional import if_changed
from stationmaster.api.file_response import attachment
from stationmaster.api.problems import problems
from stationmaster.errors import UserError
from stationmaster.station.metrics import DEFAULT_COLUMNS, Axis, Metrics
from stationmaster.station.wire.metrics import (
    ROWS_HEADER,
    ChartDocument,
    MetricsDocument,
    MetricsSummaryDocument,
    RowsDocument,
    SeriesDocument,
)

_OCTETS = "application/octet-stream"
_LARGEST = 1e15

EXPORT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": f"The file; the header `{ROWS_HEADER}` has the number of its rows.",
        "content": {_OCTETS: {"schema": {"type": "string", "format": "binary"}}},
    },
    **problems(400),
}


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    DB = "db"


FormatName = Annotated[Format, Query(description="`db` is a run's database (SQLite).")]
TableName = Annotated[str, InPath(description="Name of the table.", max_length=200)]
OneTable = Annotated[str | None, Query(description="Only this table.", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=10_000, description="At most this many rows.")]
After = Annotated[str | None, Query(description="`next` of the page before.", max_length=20)]
_Place = Annotated[
    float | None,
    Query(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False, description="A step, or seconds since 1970."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRange:
    axis: Axis
    start: float | None
    end: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedChart:
    names: tuple[str, ...]
    columns: int
    range: WantedRange


def _range(
    axis: Annotated[Literal["step", "time"], Query(description="What `start` and `end` count.")] = "step",
    start: _Place = None,
    end: _Place = None,
) -> WantedRange:
    if start is not None and end is not None and start > end:
        raise UserError("start is after end", hint="exchange the two")
    return WantedRange(axis=axis, start=start, end=end)


Range = Annotated[WantedRange, Depends(_range)]


def _chart(
    range: Range,
    name: Annotated[list[str] | None, Query(description="Only these series; default: all.", max_length=100)] = None,
    columns: Annotated[
        int, Query(ge=1, le=5000, description="Of the chart: at most two points for each are returned.")
    ] = DEFAULT_COLUMNS,
) -> WantedChart:
    return WantedChart(names=tuple(name or ()), columns=columns, range=range)


Chart = Annotated[WantedChart, Depends(_chart)]


def contents(request: Request, metrics: Metrics, subject: str) -> Response:
    return if_changed(request, metrics.version(subject), lambda: MetricsDocument.of(metrics.contents(subject)))


def chart(request: Request, metrics: Metrics, subject: str, wanted: WantedChart) -> Response:
    def make() -> ChartDocument:
        place = wanted.range
        drawn = metrics.series(
            subject, wanted.names, axis=place.axis, start=place.start, end=place.end, columns=wanted.columns
        )
        return ChartDocument(subject=subject, series=tuple(SeriesDocument.of(each) for each in drawn))

    return if_changed(request, metrics.version(subject), make)


def summary(request: Request, metrics: Metrics, subject: str, wanted: WantedRange) -> Response:
    def make() -> MetricsSummaryDocument:
        found = metrics.summary(subject, axis=wanted.axis, start=wanted.start, end=wanted.end)
        return MetricsSummaryDocument.of(found)

    return if_changed(request, metrics.version(subject), make)


def rows(metrics: Metrics, subject: str, table: str, *, limit: int, after: str | None) -> RowsDocument:
    first = 0 if after is None else _number(after)
    whole = metrics.rows(subject, table)
    page = whole.between(first, first + limit)
    more = str(first + limit) if first + limit < len(whole) else None
    return RowsDocument(table=table, columns=page.as_lists(), next=more)


def exported(metrics: Metrics, subject: str, format: Format, table: str | None) -> Response:
    folder = Path(tempfile.mkdtemp(prefix="stationmaster-"))
    name = f"{subject.replace('/', '-')}.{format.value}"
    try:
        written = metrics.export(subject, folder / name, table=table)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    headers = {
        "Content-Disposition": attachment(name),
        "Cache-Control": "private, no-store",
        "X-Content-Type-Options": "nosniff",
        ROWS_HEADER: str(written.rows),
    }
    gone = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    return FileResponse(written.path, headers=headers, media_type=_OCTETS, background=gone)


def _number(after: str) -> int:
    if not (after.isascii() and after.isdigit() and len(after) <= 15):
        raise UserError("after is not the end of a page", hint="pass `next` of the page before as it is")
    return int(after)
