"""Jobs: look at them, compare them, stop or cancel them, request checkpoints and samples, remove them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import StringConstraints

from stationmaster import model
from stationmaster.api.entity_tags import NOT_MODIFIED, tagged
from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading, Training, Visit
from stationmaster.errors import NotFound
from stationmaster.model import Desired, State
from stationmaster.station.jobs import JobView, Wanted, job_cursor
from stationmaster.station.wire.comparison import ComparisonDocument
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.jobs import CancelRequest, JobDocument, StateName, WantedDocument
from stationmaster.station.wire.plans import JobPlanDocument

routes = APIRouter(prefix="/api", tags=["jobs"], responses=problems(401, 403, 404, 422))

JobReference = Annotated[
    str, Path(description="Id of the job, the beginning of it, or the job's name.", min_length=1, max_length=200)
]
Exact = Annotated[bool, Query(description="Accept only the whole id of the job.")]
Owner = Annotated[
    str | None, Query(description="Only jobs of this user; `me` is the single user of the settings.", max_length=200)
]
After = Annotated[str | None, Query(description="`next` of the page before.", max_length=500)]
Limit = Annotated[int, Query(ge=1, le=500, description="At most this many.")]


@routes.get("/jobs", operation_id="list_jobs", summary="Jobs, newest first", responses=problems(400))
def list_jobs(
    visit: Reading,
    ended: Annotated[bool, Query(description="Also jobs that have ended.")] = False,
    owner: Owner = None,
    state: Annotated[StateName | None, Query(description="Only jobs in this state.")] = None,
    name: Annotated[str | None, Query(description="Only the newest job of this name.", max_length=200)] = None,
    after: After = None,
    limit: Limit = 100,
) -> Page[JobDocument]:
    if name is not None:
        return Page(items=tuple(JobDocument.of(view) for view in _named(visit, name, owner)))
    with_ended = ended or state == State.ENDED
    wanted = None if state is None else State(state)
    found = visit.station.jobs.views(with_ended=with_ended, limit=limit + 1, owner=owner, state=wanted, after=after)
    shown = tuple(JobDocument.of(view) for view in found[:limit])
    return Page(items=shown, next=job_cursor(found[limit - 1].job) if len(found) > limit else None)


@routes.get(
    "/jobs/{job}",
    operation_id="get_job",
    summary="A job with everything that belongs to it",
    response_model=JobDocument,
    responses=NOT_MODIFIED,
)
def get_job(
    request: Request,
    visit: Reading,
    job: JobReference,
    exact: Exact = False,
    owner: Owner = None,
    log: Annotated[bool, Query(description="With `progressLog`.")] = True,
    watch: Annotated[
        bool, Query(description="You look again within seconds: a worker then reads the training more often.")
    ] = False,
) -> Response:
    found = job_id(visit, job, exact, owner)
    view = visit.station.jobs.view(found, watching=watch)
    history = visit.station.events.of_job(found) if log else ()
    return tagged(request, JobDocument.of(view, history), ignored=("as_of",))


@routes.get("/jobs/{job}/plan", operation_id="get_plan", summary="The plan that a job runs, step by step")
def get_plan(visit: Reading, job: JobReference, exact: Exact = False) -> JobPlanDocument:
    return JobPlanDocument.of(visit.station.jobs.plan(job_id(visit, job, exact)))


@routes.delete(
    "/jobs/{job}",
    operation_id="remove_job",
    summary="Delete an ended job with its files",
    status_code=204,
    responses=problems(409),
)
def remove_job(visit: Training, job: JobReference, exact: Exact = False) -> Response:
    visit.station.jobs.remove(job_id(visit, job, exact))
    return Response(status_code=204)


@routes.post(
    "/jobs/{job}/stop",
    operation_id="stop_job",
    summary="Stop a training and keep its best checkpoint",
    responses=problems(409),
)
def stop_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.desire(job_id(visit, job, exact), Desired.STOP))


@routes.post(
    "/jobs/{job}/cancel",
    operation_id="cancel_job",
    summary="Cancel a job and release its machine",
    responses=problems(409),
)
def cancel_job(
    visit: Training, job: JobReference, how: CancelRequest | None = None, exact: Exact = False
) -> WantedDocument:
    desired = Desired.CANCEL_KEEP if how is not None and how.keep else Desired.CANCEL
    return _answer(visit, visit.station.jobs.desire(job_id(visit, job, exact), desired))


@routes.post(
    "/jobs/{job}/save",
    operation_id="save_job",
    summary="Have a running training write a checkpoint now",
    responses=problems(400, 409),
)
def save_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.ask(job_id(visit, job, exact), model.Request.SAVE))


@routes.post(
    "/jobs/{job}/sample",
    operation_id="sample_job",
    summary="Have a running training make samples now",
    responses=problems(400, 409),
)
def sample_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.ask(job_id(visit, job, exact), model.Request.SAMPLE))


@routes.get("/compare", operation_id="compare_jobs", summary="Jobs side by side", responses=problems(400))
def compare_jobs(
    visit: Reading,
    jobs: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=200)]],
        Query(description="Two to ten jobs: repeat the parameter.", min_length=1, max_length=100),
    ],
) -> ComparisonDocument:
    return ComparisonDocument.of(visit.station.jobs.compare(jobs))


def _named(visit: Visit, name: str, owner: str | None) -> list[JobView]:
    try:
        found = visit.station.jobs.find(name, owner=owner)
    except NotFound:
        return []
    return [visit.station.jobs.view(found.id)] if found.spec.name == name else []


def job_id(visit: Visit, reference: str, exact: bool, owner: str | None = None) -> str:
    """The id of the job that a request names. Raises NotFound."""
    if not exact:
        return visit.station.jobs.find(reference, owner=owner).id
    if visit.station.jobs.with_id(reference) is None:
        raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
    return reference


def _answer(visit: Visit, wanted: Wanted) -> WantedDocument:
    job = JobDocument.of(visit.station.jobs.view(wanted.job.id))
    return WantedDocument(id=job.id, note=wanted.note, job=job)
