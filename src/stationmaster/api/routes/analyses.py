"""Analyses: what a training wasted or died of, and what to change."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import Exact, JobReference, job_id
from stationmaster.api.visit import Reading, Training
from stationmaster.errors import NotFound
from stationmaster.station.wire.analysis import AnalysisDocument

routes = APIRouter(prefix="/api", tags=["analysis"], responses=problems(401, 403, 404, 422))

WithOffers = Annotated[bool, Query(description="Compare the job's machine with what can be rented now.")]


@routes.get(
    "/jobs/{job}/analysis",
    operation_id="get_analysis",
    summary="The analysis of a job's training",
    response_model_exclude_unset=True,
    responses=problems(502),
)
def get_analysis(
    visit: Reading,
    job: JobReference,
    with_offers: WithOffers = False,
    stored: Annotated[bool, Query(description="Only one that was made before: 404 if there is none.")] = False,
    exact: Exact = False,
) -> AnalysisDocument:
    """A training that still runs is analysed as it is now; one that has ended only if that was not done before."""
    found, analyses = job_id(visit, job, exact), visit.station.analyses
    analysis = analyses.stored(found) if stored else analyses.of_job(found, with_offers=with_offers)
    if analysis is None:
        raise NotFound(f"job {found} was not analysed yet", hint="ask without `stored` to have it analysed")
    return AnalysisDocument.of(analysis)


@routes.post(
    "/jobs/{job}/analysis",
    operation_id="analyse_again",
    summary="Analyse a job anew and store the result",
    response_model_exclude_unset=True,
    responses=problems(502),
)
def analyse_again(
    visit: Training, job: JobReference, with_offers: WithOffers = False, exact: Exact = False
) -> AnalysisDocument:
    found = job_id(visit, job, exact)
    return AnalysisDocument.of(visit.station.analyses.of_job(found, again=True, with_offers=with_offers))
