"""Series of jobs: charts, numbers, rows, import and export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Query, Request, Response

from stationmaster.api.conditional import NOT_MODIFIED
from stationmaster.api.metric_answers import (
    EXPORT_RESPONSES,
    After,
    Chart,
    FormatName,
    Limit,
    OneTable,
    Range,
    TableName,
    chart,
    contents,
    exported,
    rows,
    summary,
)
from stationmaster.api.problems import problems
from stationmaster.api.received_file import received_file, unpacked, without_folder
from stationmaster.api.routes.jobs import Exact, JobReference, job_id
from stationmaster.api.visit import Reading, Training, Visit
from stationmaster.station.wire.metrics import (
    ChartDocument,
    ImportedDocument,
    MetricsDocument,
    MetricsSummaryDocument,
    RowsDocument,
)

routes = APIRouter(prefix="/api/jobs/{job}/metrics", tags=["metrics"], responses=problems(401, 403, 404, 422))

_MOST_IMPORTED_BYTES = 256 << 20


@routes.get(
    "",
    operation_id="get_metrics",
    summary="What was measured of a job",
    response_model=MetricsDocument,
    responses=NOT_MODIFIED,
)
def get_metrics(visit: Reading, request: Request, job: JobReference, exact: Exact = False) -> Response:
    return contents(request, visit.station.metrics, job_id(visit, job, exact))


@routes.get(
    "/series",
    operation_id="get_series",
    summary="Series of a job, reduced to what a chart can show",
    response_model=ChartDocument,
    responses=NOT_MODIFIED | problems(400),
)
def get_series(visit: Reading, request: Request, job: JobReference, wanted: Chart, exact: Exact = False) -> Response:
    return chart(request, visit.station.metrics, job_id(visit, job, exact), wanted)


@routes.get(
    "/summary",
    operation_id="get_metrics_summary",
    summary="The series of a job in numbers",
    response_model=MetricsSummaryDocument,
    responses=NOT_MODIFIED | problems(400),
)
def get_metrics_summary(
    visit: Reading, request: Request, job: JobReference, wanted: Range, exact: Exact = False
) -> Response:
    return summary(request, visit.station.metrics, job_id(visit, job, exact), wanted)


@routes.get(
    "/rows/{table}",
    operation_id="list_metric_rows",
    summary="The rows of one table of a job",
    responses=problems(400),
)
def list_metric_rows(
    visit: Reading,
    job: JobReference,
    table: TableName,
    limit: Limit = 1000,
    after: After = None,
    exact: Exact = False,
) -> RowsDocument:
    return rows(visit.station.metrics, job_id(visit, job, exact), table, limit=limit, after=after)


@routes.get(
    "/export",
    operation_id="export_metrics",
    summary="Everything that was measured of a job as a file",
    response_class=Response,
    responses=EXPORT_RESPONSES,
)
def export_metrics(
    visit: Reading, job: JobReference, format: FormatName, table: OneTable = None, exact: Exact = False
) -> Response:
    return exported(visit.station.metrics, job_id(visit, job, exact), format, table)


@routes.post(
    "/import",
    operation_id="import_metrics",
    summary="Store the series of a file with a job",
    responses=problems(400, 413),
    openapi_extra={
        "requestBody": {
            "description": "The file, or an uncompressed tar of the files of a folder.",
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def import_metrics(
    visit: Training,
    request: Request,
    job: JobReference,
    name: Annotated[str, Query(min_length=1, max_length=200, description="The file's name, which tells its format.")],
    folder: Annotated[bool, Query(description="The body is a tar of a folder's files.")] = False,
    exact: Exact = False,
) -> ImportedDocument:
    """It replaces what was imported for the job before."""
    found = await anyio.to_thread.run_sync(job_id, visit, job, exact)
    async with received_file(request, name, most_bytes=_MOST_IMPORTED_BYTES) as file:
        return await anyio.to_thread.run_sync(lambda: _imported(visit, found, file, is_folder=folder))


def _imported(visit: Visit, job: str, file: Path, *, is_folder: bool) -> ImportedDocument:
    metrics = visit.station.metrics
    if not is_folder:
        with without_folder(file.parent):
            return ImportedDocument.of(metrics.import_files(job, file))
    with unpacked(file, most_bytes=_MOST_IMPORTED_BYTES) as files, without_folder(files.parent):
        return ImportedDocument.of(metrics.import_files(job, files))
