"""Series of machines that were watched without a job."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

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
from stationmaster.api.visit import Reading, Visit
from stationmaster.station.wire.metrics import ChartDocument, MetricsDocument, MetricsSummaryDocument, RowsDocument

routes = APIRouter(
    prefix="/api/instances/{provider}/{instance}/metrics",
    tags=["metrics"],
    responses=problems(401, 403, 404, 422),
)

Provider = Annotated[str, Path(description="Name of the provider.", min_length=1, max_length=200)]
Instance = Annotated[str, Path(description="The provider's id of the machine.", min_length=1, max_length=200)]


@routes.get(
    "",
    operation_id="get_machine_metrics",
    summary="What was measured of a watched machine",
    response_model=MetricsDocument,
    responses=NOT_MODIFIED,
)
def get_machine_metrics(visit: Reading, request: Request, provider: Provider, instance: Instance) -> Response:
    return contents(request, visit.station.metrics, _subject(visit, provider, instance))


@routes.get(
    "/series",
    operation_id="get_machine_series",
    summary="Series of a watched machine, reduced to what a chart can show",
    response_model=ChartDocument,
    responses=NOT_MODIFIED | problems(400),
)
def get_machine_series(
    visit: Reading, request: Request, provider: Provider, instance: Instance, wanted: Chart
) -> Response:
    return chart(request, visit.station.metrics, _subject(visit, provider, instance), wanted)


@routes.get(
    "/summary",
    operation_id="get_machine_summary",
    summary="The series of a watched machine in numbers",
    response_model=MetricsSummaryDocument,
    responses=NOT_MODIFIED | problems(400),
)
def get_machine_summary(
    visit: Reading, request: Request, provider: Provider, instance: Instance, wanted: Range
) -> Response:
    return summary(request, visit.station.metrics, _subject(visit, provider, instance), wanted)


@routes.get(
    "/rows/{table}",
    operation_id="list_machine_rows",
    summary="The rows of one table of a watched machine",
    responses=problems(400),
)
def list_machine_rows(
    visit: Reading,
    provider: Provider,
    instance: Instance,
    table: TableName,
    limit: Limit = 1000,
    after: After = None,
) -> RowsDocument:
    return rows(visit.station.metrics, _subject(visit, provider, instance), table, limit=limit, after=after)


@routes.get(
    "/export",
    operation_id="export_machine_metrics",
    summary="Everything that was measured of a watched machine as a file",
    response_class=Response,
    responses=EXPORT_RESPONSES,
)
def export_machine_metrics(
    visit: Reading, provider: Provider, instance: Instance, format: FormatName, table: OneTable = None
) -> Response:
    return exported(visit.station.metrics, _subject(visit, provider, instance), format, table)


def _subject(visit: Visit, provider: str, instance: str) -> str:
    """The name of the machine's series. Raises NotFound, and Forbidden for those who are not administrators."""
    return visit.station.metrics.find(f"{provider}/{instance}")
