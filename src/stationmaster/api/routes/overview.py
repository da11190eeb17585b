"""The overview of jobs, for a page that asks every few seconds."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from stationmaster.api.entity_tags import NOT_MODIFIED, tagged
from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import Owner
from stationmaster.api.times import seconds_of
from stationmaster.api.visit import Reading
from stationmaster.station.overview import DEFAULT_ENDED, MOST_ENDED
from stationmaster.station.wire.overview import OverviewDocument

routes = APIRouter(prefix="/api", tags=["overview"], responses=problems(401, 403, 422))


@routes.get(
    "/overview",
    operation_id="get_overview",
    summary="All jobs in a line each, and their figures together",
    response_model=OverviewDocument,
    responses=NOT_MODIFIED,
)
def get_overview(
    request: Request,
    visit: Reading,
    ended_limit: Annotated[
        int, Query(ge=0, le=MOST_ENDED, description="At most this many of the newest ended jobs.")
    ] = DEFAULT_ENDED,
    owner: Owner = None,
    today_from: Annotated[
        datetime | None,
        Query(description="When the day of `failed` and `spent_today_usd` began; by default at midnight UTC."),
    ] = None,
) -> Response:
    began = None if today_from is None else seconds_of(today_from)
    found = visit.station.overview.look(ended_limit=ended_limit, owner=owner, today_from=began)
    return tagged(request, OverviewDocument.of(found), ignored=("as_of",))
