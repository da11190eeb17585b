"""Proposals: what a training would take, and jobs exactly as they were proposed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Response

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading, Training, Visit
from stationmaster.model import SINGLE_USER
from stationmaster.station.job_file import JobFile
from stationmaster.station.proposals import Accepted, TrainRequest
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.station.wire.proposals import (
    EstimateBody,
    EstimateDocument,
    ProposalDocument,
    RetryBody,
    SubmitBody,
    SubmittedDocument,
    TermsDocument,
    remote_request,
)

routes = APIRouter(prefix="/api", tags=["proposals"], responses=problems(400, 401, 402, 403, 404, 409, 422, 502, 507))

ProposalId = Annotated[
    str,
    Path(max_length=200, description="Id of the proposal, which the answer has.", examples=["9f0c1d9a2b7e4c68"]),
]
JobName = Annotated[str, Path(max_length=200, description="The job: its id, a unique beginning of it, or its name.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="A new random text per request. Repeating the request with the same key and body answers with the "
        "same job. Keys are forgotten after 30 days.",
        examples=["5d1b7c60-2c35-4f0e-9c0d-0f6a8f6b7a11"],
    ),
]


@routes.post("/terms", operation_id="check_training", summary="What a training would take; nothing is stored")
def check_training(visit: Training, training: JobFile) -> TermsDocument:
    return TermsDocument.of(visit.station.proposals.check(_request(visit, training)))


@routes.post(
    "/proposals",
    operation_id="propose_training",
    summary="Check a training and keep its terms for an hour, to be confirmed",
    status_code=201,
)
def propose_training(visit: Training, training: JobFile) -> ProposalDocument:
    return ProposalDocument.of(visit.station.proposals.propose(_request(visit, training)))


@routes.get("/proposals/{proposal}", operation_id="get_proposal", summary="A proposal that can still be submitted")
def get_proposal(visit: Reading, proposal: ProposalId) -> ProposalDocument:
    return ProposalDocument.of(visit.station.proposals.find(proposal))


@routes.delete("/proposals/{proposal}", operation_id="withdraw_proposal", summary="Delete a proposal", status_code=204)
def withdraw_proposal(visit: Training, proposal: ProposalId) -> Response:
    visit.station.proposals.withdraw(proposal)
    return Response(status_code=204)


@routes.post(
    "/proposals/{proposal}/submit",
    operation_id="submit_proposal",
    summary="Queue the job exactly as it was proposed; repeating it changes nothing",
    status_code=201,
    responses={200: {"description": "The job exists already", "model": SubmittedDocument}},
)
def submit_proposal(
    visit: Training, response: Response, proposal: ProposalId, choice: SubmitBody | None = None
) -> SubmittedDocument:
    offer = None if choice is None else choice.offer
    return _answer(visit, response, visit.station.proposals.submit(proposal, offer=offer))


@routes.post(
    "/jobs",
    operation_id="submit_training",
    summary="Check a training and queue it at once, within the limits that it names",
    status_code=201,
    responses={200: {"description": "The job exists already", "model": SubmittedDocument}},
)
def submit_training(visit: Training, response: Response, training: JobFile, key: Key = None) -> SubmittedDocument:
    accepted = visit.station.proposals.enqueue(_request(visit, training), key=key, user=visit.caller.user)
    return _answer(visit, response, accepted)


@routes.post(
    "/jobs/{job}/retry",
    operation_id="propose_retry",
    summary="Propose a new job like an ended one, at today's price",
    status_code=201,
)
def propose_retry(visit: Training, job: JobName, retry: RetryBody) -> ProposalDocument:
    return ProposalDocument.of(visit.station.proposals.propose(retry.request(job)))


@routes.post(
    "/jobs/{job}/retry/terms",
    operation_id="check_retry",
    summary="What a new job like an ended one would take; nothing is stored",
)
def check_retry(visit: Training, job: JobName, retry: RetryBody) -> TermsDocument:
    return TermsDocument.of(visit.station.proposals.check(retry.request(job)))


@routes.post("/estimates", operation_id="estimate_training", summary="Estimate a training's time, cost and GPU memory")
def estimate_training(visit: Reading, training: EstimateBody) -> EstimateDocument:
    found = visit.station.proposals.estimate(training.request())
    return EstimateDocument.of_estimate(found, recipe=training.recipe)


def _request(visit: Visit, training: JobFile) -> TrainRequest:
    """Whoever asks owns the job, unless the request names another; jobs of the single user have no owner."""
    user = visit.caller.user
    return remote_request(training, default_owner=None if user == SINGLE_USER else user)


def _answer(visit: Visit, response: Response, accepted: Accepted) -> SubmittedDocument:
    if not accepted.created:
        response.status_code = 200
    view = visit.station.jobs.view(accepted.job.id)
    return SubmittedDocument(job=JobDocument.of(view), created=accepted.created, notes=accepted.notes)
