"""Proposals on a server; a dataset of this computer is uploaded first."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from stationmaster.errors import NotFound, ServerError
from stationmaster.model import SINGLE_USER
from stationmaster.money import exact_dollars
from stationmaster.recipes.parameters import resolve
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.datasets import Progress
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.http.dataset_upload import upload_dataset
from stationmaster.station.http.recipes import HttpRecipes
from stationmaster.station.job_file import AskedMachine, JobFile, invalid_as_user_error
from stationmaster.station.proposals import (
    Accepted,
    Asked,
    Estimate,
    EstimateRequest,
    Proposal,
    RetryRequest,
    Terms,
    TrainRequest,
)
from stationmaster.station.wire.adopting import AdoptBody
from stationmaster.station.wire.proposals import (
    EstimateBody,
    EstimateDocument,
    ProposalDocument,
    RetryBody,
    SubmitBody,
    SubmittedDocument,
    TermsDocument,
)

Answer = TypeVar("Answer")

_PROPOSAL_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_PAUSES = (0.2, 1.0, 3.0)  # seconds before a request is repeated that got no answer


class HttpProposals:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def check(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Terms:
        if isinstance(request, AdoptRequest):
            adopt = _adopt(request)
            return self._connection.post("/api/adoptions/terms", TermsDocument, adopt, patient=True).value()
        if isinstance(request, RetryRequest):
            path, again = _retry(request)
            return self._connection.post(f"{path}/terms", TermsDocument, again, patient=True).value()
        body = self._body(request, progress, packing)
        return self._connection.post("/api/terms", TermsDocument, body, patient=True).value()

    def propose(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Proposal:
        if isinstance(request, AdoptRequest):
            adopt = _adopt(request)
            return self._connection.post("/api/adoptions", ProposalDocument, adopt, patient=True).value()
        if isinstance(request, RetryRequest):
            path, again = _retry(request)
            return self._connection.post(path, ProposalDocument, again, patient=True).value()
        body = self._body(request, progress, packing)
        return self._connection.post("/api/proposals", ProposalDocument, body, patient=True).value()

    def find(self, proposal_id: str) -> Proposal:
        return self._connection.get(_path(proposal_id), ProposalDocument).value()

    def submit(self, proposal_id: str, *, offer: str | None = None) -> Accepted:
        path = f"{_path(proposal_id)}/submit"
        with invalid_as_user_error():
            body = SubmitBody(offer=offer)
        return _repeated(lambda: self._connection.post(path, SubmittedDocument, body, patient=True).value())

    def enqueue(self, request: TrainRequest, *, key: str | None = None, user: str = SINGLE_USER) -> Accepted:
        """The server takes the user from the token."""
        body = self._body(request)
        headers = {} if key is None else {"Idempotency-Key": key}

        def ask() -> Accepted:
            return self._connection.post("/api/jobs", SubmittedDocument, body, headers=headers, patient=True).value()

        return ask() if key is None else _repeated(ask)

    def withdraw(self, proposal_id: str) -> None:
        self._connection.send("DELETE", _path(proposal_id))

    def estimate(self, request: EstimateRequest) -> Estimate:
        with invalid_as_user_error():
            body = EstimateBody(
                recipe=request.recipe,
                images=request.images,
                parameters=dict(request.parameters),
                provider=request.provider,
                max_price=exact_dollars(request.max_price),
                gpu=request.gpu,
                vram_gib=request.vram_gib,
                max_hours=request.max_hours,
                max_spend=exact_dollars(request.max_spend),
                machine=AskedMachine.of(request.machine),
            )
        return self._connection.post("/api/estimates", EstimateDocument, body, patient=True).estimate()

    def _body(
        self, request: TrainRequest, progress: Progress | None = None, packing: Progress | None = None
    ) -> JobFile:
        """The request with a dataset that the server can read. What is wrong with it is said before an upload."""
        JobFile.of(request).request()
        if not isinstance(request.dataset, Path):
            return JobFile.of(request)
        source = request.dataset
        if not source.exists():
            raise NotFound(f"there is no dataset at {source}", hint="pass the folder with the images and captions")
        resolve(HttpRecipes(self._connection).find(request.recipe), request.parameters)
        uploaded = upload_dataset(self._connection, source, progress=progress, packing=packing)
        return JobFile.of(replace(request, dataset=uploaded, name=request.name or source.name or None))


def _repeated(ask: Callable[[], Answer]) -> Answer:
    """Ask until there is an answer: a request that got none may have been carried out, and repeating it is safe."""
    for pause in _PAUSES:
        try:
            return ask()
        except ServerError:
            time.sleep(pause)
    return ask()


def _adopt(request: AdoptRequest) -> AdoptBody:
    """The server takes the owner from the token."""
    with invalid_as_user_error():
        return AdoptBody.of(request)


def _retry(request: RetryRequest) -> tuple[str, RetryBody]:
    if not request.job:
        raise NotFound("there is no job with an empty name", hint="run `stationmaster jobs --all` to see them")
    with invalid_as_user_error():
        return f"/api/jobs/{segment(request.job)}/retry", RetryBody.of(request)


def _path(proposal_id: str) -> str:
    if not _PROPOSAL_ID.fullmatch(proposal_id):  # would be another address
        raise NotFound(f"there is no proposal {proposal_id}", hint="propose it again")
    return f"/api/proposals/{proposal_id}"
