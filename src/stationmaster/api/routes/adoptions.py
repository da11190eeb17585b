"""Adoptions: jobs for trainings that were started by hand."""

from __future__ import annotations

from fastapi import APIRouter

from stationmaster.api.problems import problems
from stationmaster.api.visit import Training, Visit
from stationmaster.model import SINGLE_USER
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.wire.adopting import AdoptBody
from stationmaster.station.wire.proposals import ProposalDocument, TermsDocument

routes = APIRouter(prefix="/api", tags=["proposals"], responses=problems(400, 401, 403, 404, 409, 422, 502))


@routes.post(
    "/adoptions/terms",
    operation_id="check_adoption",
    summary="Look at a training that was started by hand; nothing is stored",
)
def check_adoption(visit: Training, training: AdoptBody) -> TermsDocument:
    return TermsDocument.of(visit.station.proposals.check(_request(visit, training)))


@routes.post(
    "/adoptions",
    operation_id="propose_adoption",
    summary="Look at a training that was started by hand and propose a job that watches it",
    status_code=201,
)
def propose_adoption(visit: Training, training: AdoptBody) -> ProposalDocument:
    return ProposalDocument.of(visit.station.proposals.propose(_request(visit, training)))


def _request(visit: Visit, training: AdoptBody) -> AdoptRequest:
    """Whoever asks owns the job; jobs of the single user have no owner."""
    user = visit.caller.user
    return training.request(owner=None if user == SINGLE_USER else user)
