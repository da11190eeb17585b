"""What machines cost."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import After, Exact, JobReference, Limit, Owner, job_id
from stationmaster.api.routes.users import UserName
from stationmaster.api.times import seconds_of
from stationmaster.api.visit import Reading
from stationmaster.station.costs import Part, SplitBy, cost_cursor, period_until
from stationmaster.station.wire.costs import BudgetDocument, CostsOverTimeDocument, PaidLineDocument
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
    "/costs/over-time",
    operation_id="get_costs_over_time",
    summary="What machines cost in each hour or day",
    responses=problems(400),
)
def get_costs_over_time(
    visit: Reading,
    part: Annotated[Part, Query(description="How long each part of time is.")] = Part.DAY,
    start: Annotated[
        datetime | None,
        Query(description="Where the first part begins; by default the last 48 hours or 30 days, in UTC."),
    ] = None,
    end: Annotated[datetime | None, Query(description="Covered by the last part; by default now.")] = None,
    split_by: Annotated[SplitBy | None, Query(description="Also split each part by this.")] = None,
    owner: Owner = None,
) -> CostsOverTimeDocument:
    until = visit.station.now() if end is None else seconds_of(end)
    period = period_until(until, part, start=None if start is None else seconds_of(start))
    return CostsOverTimeDocument.of(visit.station.costs.over_time(period, split_by=split_by, owner=owner))


@routes.get(
    "/users/{user}/budget",
    operation_id="get_budget",
    summary="The limits on what a user spends, and what is used of them",
    responses=problems(404),
)
def get_budget(visit: Reading, user: UserName) -> BudgetDocument:
    return BudgetDocument.of(visit.station.costs.budget(visit.user_named(user)))


@routes.get(
    "/jobs/{job}/costs",
    operation_id="list_job_costs",
    summary="What each machine of a job cost",
    responses=problems(404),
)
def list_job_costs(visit: Reading, job: JobReference, exact: Exact = False) -> Page[PaidLineDocument]:
    found = visit.station.costs.lines(job_id(visit, job, exact))
    return Page(items=tuple(PaidLineDocument.of(line) for line in found))
