"""Proposals of one user, for jobs of theirs, on machines and datasets that they may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stationmaster.datasets.sources.reference import DatasetReference, UploadReference
from stationmaster.errors import Forbidden, IllegalMove, NotFound
from stationmaster.model import SINGLE_USER, Caller, Right
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.datasets import Progress
from stationmaster.station.jobs import Jobs
from stationmaster.station.owned.allowances import Allowances
from stationmaster.station.owned.recipes import no_recipe_files
from stationmaster.station.owned.rights import require
from stationmaster.station.proposals import (
    Accepted,
    Asked,
    Estimate,
    EstimateRequest,
    Proposal,
    Proposals,
    RetryRequest,
    Terms,
    TrainRequest,
)


class OwnedProposals:
    def __init__(
        self,
        caller: Caller,
        proposals: Proposals,
        *,
        jobs: Jobs,
        own_jobs: Jobs,
        require_upload: Callable[[str], object],
        allowances: Allowances,
    ) -> None:
        """`jobs` are those of everyone, `own_jobs` the caller's. `require_upload` raises NotFound unless the upload is
        the caller's.
        """
        self._caller = caller
        self._all = proposals
        self._jobs = jobs
        self._own_jobs = own_jobs
        self._require_upload = require_upload
        self._allowances = allowances

    def check(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Terms:
        allowed = self._allowed(request)
        with no_recipe_files():
            return self._all.check(allowed, progress=progress, packing=packing)

    def propose(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Proposal:
        allowed = self._allowed(request)
        with no_recipe_files():
            return self._all.propose(allowed, progress=progress, packing=packing)

    def find(self, proposal_id: str) -> Proposal:
        found = self._all.find(proposal_id)
        if not self._caller.owns(found.owner):
            raise NotFound(f"there is no proposal {proposal_id}", hint="propose it again")
        return found

    def submit(self, proposal_id: str, *, offer: str | None = None) -> Accepted:
        require(self._caller, Right.TRAIN)
        self._require_free_id(self.find(proposal_id).job_id)
        return self._own(self._all.submit(proposal_id, offer=offer))

    def enqueue(self, request: TrainRequest, *, key: str | None = None, user: str = SINGLE_USER) -> Accepted:
        allowed = self._allowed(request)
        assert isinstance(allowed, TrainRequest)
        with no_recipe_files():
            return self._own(self._all.enqueue(allowed, key=key, user=self._caller.user))

    def withdraw(self, proposal_id: str) -> None:
        require(self._caller, Right.TRAIN)
        self.find(proposal_id)
        self._all.withdraw(proposal_id)

    def estimate(self, request: EstimateRequest) -> Estimate:
        self._allowances.require_provider(request.provider)
        with no_recipe_files():
            return self._all.estimate(request)

    def _allowed(self, request: Asked) -> Asked:
        """The request as it may be made. Raises Forbidden, NotFound."""
        require(self._caller, Right.TRAIN)
        if request.id is not None:
            self._require_free_id(request.id)
        if isinstance(request, AdoptRequest):
            self._allowances.require_adoption(request)
            return replace(request, owner=self._caller.user)
        if isinstance(request, RetryRequest):
            old = self._own_jobs.find(request.job)
            self._allowances.require_provider(old.spec.provider)
            return replace(request, job=old.id)
        if request.owner not in (None, SINGLE_USER, self._caller.user):
            raise Forbidden("only administrators may submit jobs for others", hint="leave out the owner")
        self._allowances.require_provider(request.provider, request.account)
        self._require_dataset(request.dataset)
        return replace(request, owner=self._caller.user)

    def _require_dataset(self, source: DatasetReference) -> None:
        match source:
            case UploadReference():
                self._require_upload(source.id)
            case Path():
                raise Forbidden("only administrators may train on files of the server", hint="upload the dataset")
            case _:
                self._allowances.require_dataset(source)

    def _require_free_id(self, job_id: str) -> None:
        """Raises IllegalMove if the id is another user's: their job must not be the answer."""
        there = self._jobs.with_id(job_id)
        if there is not None and not self._caller.owns(there.spec.owner):
            raise _taken(job_id)

    def _own(self, accepted: Accepted) -> Accepted:
        if not self._caller.owns(accepted.job.spec.owner):  # another user's job was queued meanwhile under the same id
            raise _taken(accepted.job.id)
        return accepted


def _taken(job_id: str) -> IllegalMove:
    return IllegalMove(f"the id {job_id} cannot be used", hint="choose another id, or none")
