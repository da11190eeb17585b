"""What machines cost."""

from __future__ import annotations

from fastapi import APIRouter

from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import After, Exact, JobReference, Limit, Owner, job_id
from stationmaster.api.visit import Reading
from stationmaster.station.costs import cost_cursor
from stationmaster.station.wire.costs import PaidLineDocument
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api", tags=["costs"], responses=problems(401, 403, 422))


@routes.get(
    "/costs", operation_id="list_costs", summary="What each machine cost, oldest first", responses=problems(400)
)
def list_costs(visit: Reading, owner: Owner = None, after: After = None, limit: Limit = 100) -> Page[PaidLineDocument]:
    found = visit.station.costs.lines(owner=owner, after=after, limit=limit + 1)
    shown = tuple(PaidLineDocument.of(line) for line in found[:limit])
    return Page(items=shown, next=cost_cursor(found[limit - 1]) if len(found) > limit else None)


@routes.get(
    "/jobs/{job}/costs",
    operation_id="list_job_costs",
    summary="What each machine of a job cost",
    responses=problems(404),
)
def list_job_costs(visit: Reading, job: JobReference, exact: Exact = False) -> Page[PaidLineDocument]:
    found = visit.station.costs.lines(job_id(visit, job, exact))
    return Page(items=tuple(PaidLineDocument.of(line) for line in found))
