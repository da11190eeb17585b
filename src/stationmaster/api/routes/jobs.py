"""Jobs: look at them, stop or cancel them, request checkpoints and samples, remove them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading, Training, Visit
from stationmaster.errors import NotFound
from stationmaster.model import Desired, Request
from stationmaster.station.jobs import Wanted
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.jobs import CancelRequest, JobDocument, WantedDocument

routes = APIRouter(prefix="/api", tags=["jobs"], responses=problems(401, 403, 404, 422))

JobReference = Annotated[
    str, Path(description="Id of the job, the beginning of it, or the job's name.", min_length=1, max_length=200)
]
Exact = Annotated[bool, Query(description="Accept only the whole id.")]


@routes.get("/jobs", operation_id="list_jobs", summary="Jobs, newest first")
def list_jobs(
    visit: Reading,
    ended: Annotated[bool, Query(description="Also those that have ended.")] = False,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many jobs.")] = 100,
) -> Page[JobDocument]:
    jobs = visit.station.jobs
    found = jobs.listed(with_ended=ended, limit=limit)
    return Page(items=tuple(JobDocument.of(jobs.view(job.id)) for job in found))


@routes.get("/jobs/{job}", operation_id="get_job", summary="A job with everything that belongs to it")
def get_job(visit: Reading, job: JobReference, exact: Exact = False) -> JobDocument:
    job_id = _id(visit, job, exact)
    history = visit.station.events.of_job(job_id)
    return JobDocument.of(visit.station.jobs.view(job_id), history)


@routes.delete(
    "/jobs/{job}",
    operation_id="remove_job",
    summary="Delete an ended job with its files",
    status_code=204,
    responses=problems(409),
)
def remove_job(visit: Training, job: JobReference, exact: Exact = False) -> Response:
    visit.station.jobs.remove(_id(visit, job, exact))
    return Response(status_code=204)


@routes.post(
    "/jobs/{job}/stop",
    operation_id="stop_job",
    summary="Stop a training and keep its best checkpoint",
    responses=problems(409),
)
def stop_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.desire(_id(visit, job, exact), Desired.STOP))


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
    return _answer(visit, visit.station.jobs.desire(_id(visit, job, exact), desired))


@routes.post(
    "/jobs/{job}/save",
    operation_id="save_job",
    summary="Have a running training write a checkpoint now",
    responses=problems(409),
)
def save_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.ask(_id(visit, job, exact), Request.SAVE))


@routes.post(
    "/jobs/{job}/sample",
    operation_id="sample_job",
    summary="Have a running training make samples now",
    responses=problems(409),
)
def sample_job(visit: Training, job: JobReference, exact: Exact = False) -> WantedDocument:
    return _answer(visit, visit.station.jobs.ask(_id(visit, job, exact), Request.SAMPLE))


def _id(visit: Visit, reference: str, exact: bool) -> str:
    if not exact:
        return visit.station.jobs.find(reference).id
    if visit.station.jobs.with_id(reference) is None:
        raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
    return reference


def _answer(visit: Visit, wanted: Wanted) -> WantedDocument:
    job = JobDocument.of(visit.station.jobs.view(wanted.job.id))
    return WantedDocument(id=job.id, note=wanted.note, job=job)
