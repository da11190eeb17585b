"""Proposals of this installation: checked, packed and stored; submitting checks only the credits again."""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stationmaster.analysis.report import Report
from stationmaster.config import read_monitoring
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.periodic.dataset_cleanup import forget_dataset
from stationmaster.control.results.job_folder import fetched_path
from stationmaster.datasets.pack import pack_into, write_manifest
from stationmaster.errors import IllegalMove, NotFound, OutOfCredit, UserError
from stationmaster.estimate import most_per_hour
from stationmaster.model import (
    SINGLE_USER,
    Checkpoint,
    DatasetRef,
    Job,
    JobSpec,
    Quote,
)
from stationmaster.providers.base import NeedsKey
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.recipes.wishes import require_usable_gpus, with_wish
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.datasets import Progress
from stationmaster.station.local.artifacts import copy_file, is_available, is_resumable, state_beside
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.jobs import LocalJobs
from stationmaster.station.local.proposing.adopting import Adoption, check_adoption, require_not_adopted
from stationmaster.station.local.proposing.changing import with_changes
from stationmaster.station.local.proposing.checking import Checked, CheckedAgain, check_again, check_request
from stationmaster.station.local.proposing.following import Again, follow_analysis
from stationmaster.station.local.proposing.keyed import claim_job_id, worker_notes
from stationmaster.station.local.proposing.limits import budget_notes, limits_of
from stationmaster.station.local.proposing.naming import checked_id
from stationmaster.station.local.proposing.offer_choice import AskedCard
from stationmaster.station.local.proposing.quoting import Work, quote_work
from stationmaster.station.local.proposing.stored import proposal_of, terms_of
from stationmaster.station.local.wrong_names import no_such_user
from stationmaster.station.proposals import (
    Accepted,
    Asked,
    Estimate,
    EstimateRequest,
    Proposal,
    RetryChanges,
    RetryRequest,
    Terms,
    TrainRequest,
)

ReportOf = Callable[[str], Report]

_VALID_SECONDS = 3600.0
"""How long a proposal can be submitted. Its price stays valid that long: no worker pays more."""


class LocalProposals:
    def __init__(self, installation: Installation, *, report_of: ReportOf) -> None:
        """`report_of` returns the analysis of a job's training. It raises NotFound for a job that has not trained."""
        self._installation = installation
        self._report_of = report_of
        self._settings = installation.settings
        self._store = installation.store
        self._jobs = LocalJobs(installation)

    def check(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Terms:
        if isinstance(request, AdoptRequest):
            return self._adoption(request, job_id="JOB" if request.id is None else checked_id(request.id)).terms
        if isinstance(request, RetryRequest):
            again = self._again(self._ended_job(request.job), request)
            return self._check_again(again, offer=request.offer, is_dry_run=True).terms
        job_id = "JOB" if request.id is None else checked_id(request.id)
        return self._check(request, job_id=job_id, progress=progress, is_dry_run=True).terms

    def propose(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Proposal:
        if isinstance(request, AdoptRequest):
            adoption = self._adoption(request, job_id=checked_id(request.id))
            return self._store_proposal(adoption.spec, adoption.terms)
        if isinstance(request, RetryRequest):
            return self._propose_again(request)
        self._require_key(request.provider, request.account)
        checked = self._check(request, job_id=checked_id(request.id), progress=progress)
        proposal = self._store_proposal(self._make_spec(checked, request, packing), checked.terms)
        if not self._is_packed(proposal):  # removed meanwhile, with the last other job that used it
            self._pack(checked)
        return proposal

    def find(self, proposal_id: str) -> Proposal:
        return proposal_of(self._store.proposals.get(proposal_id))

    def submit(self, proposal_id: str, *, offer: str | None = None) -> Accepted:
        proposal = self._store.proposals.get(proposal_id)
        spec, terms = proposal.spec, terms_of(proposal.terms)
        if offer is not None and offer != spec.quote.offer:
            terms = terms.on(offer)
            spec = replace(spec, quote=terms.quote, max_seconds=terms.max_seconds, max_spend=terms.max_spend)
        if (there := self._jobs.with_id(spec.id)) is not None:
            return Accepted(job=there, created=False)
        self._require_owner(spec.owner)
        self._budget_notes(spec.quote, spec.owner)
        require_not_adopted(spec, self._installation)
        submitted = self._store.proposals.submit(proposal_id, spec=spec)
        notes = (*terms.notes, *worker_notes(self._settings))
        return Accepted(job=submitted.job, created=submitted.created, notes=notes)

    def enqueue(self, request: TrainRequest, *, key: str | None = None, user: str = SINGLE_USER) -> Accepted:
        # The id comes first: whatever happens between here and the answer, a repeated request finds it again.
        job_id = checked_id(request.id)
        if key is not None:
            job_id = claim_job_id(self._store, request, key=key, user=user, job_id=job_id)
        if (there := self._jobs.with_id(job_id)) is not None:
            return Accepted(job=there, created=False)
        return self.submit(self.propose(replace(request, id=job_id)).id)

    def withdraw(self, proposal_id: str) -> None:
        dataset = self._store.proposals.get(proposal_id).spec.dataset
        self._store.proposals.remove(proposal_id)
        forget_dataset(dataset, self._settings.home, self._store)

    def estimate(self, request: EstimateRequest) -> Estimate:
        found = find(request.recipe, folders=self._settings.recipes).recipe
        require_usable_gpus(found, request.machine)
        recipe = with_wish(found, request.machine)
        provider = self._installation.provider(request.provider)
        work = Work(
            recipe=recipe,
            parameters=resolve(recipe, request.parameters),
            images=request.images,
            max_price=request.max_price,
            card=_asked_card(request),
            is_dry_run=True,
        )
        quoted = quote_work(work, provider, past_runs=self._store.runs.finished, home=self._settings.home)
        limits = limits_of(quoted.quote, self._settings, max_hours=request.max_hours, max_spend=request.max_spend)
        return Estimate(
            provider=provider.name,
            quote=quoted.quote,
            max_price_per_hour=most_per_hour(quoted.quote, request.max_price),
            notes=(*quoted.notes, *limits.notes),
            max_seconds=limits.max_seconds,
            max_spend=limits.max_spend,
            spend_note=limits.spend_note,
            is_offered=quoted.is_offered,
        )

    def _adoption(self, request: AdoptRequest, *, job_id: str) -> Adoption:
        self._require_owner(request.owner)
        return check_adoption(request, self._installation, job_id=job_id, name=request.name)

    def _check(
        self, request: TrainRequest, *, job_id: str, progress: Progress | None, is_dry_run: bool = False
    ) -> Checked:
        self._require_owner(request.owner)
        provider = self._installation.provider(request.provider, request.account)
        past = self._store.runs.finished
        checked = check_request(
            request,
            self._settings,
            provider,
            job_id=job_id,
            past_runs=past,
            progress=progress,
            is_dry_run=is_dry_run,
        )
        return replace(checked, terms=self._with_budget_notes(checked.terms, request.owner))

    def _check_again(self, again: Again, *, offer: str | None, is_dry_run: bool = False) -> CheckedAgain:
        spec, provider = again.spec, self._installation.provider(again.spec.provider)
        past = self._store.runs.finished
        checked = check_again(
            spec,
            self._settings,
            provider,
            past_runs=past,
            max_hours=again.max_hours,
            max_spend=again.max_spend,
            offer=offer,
            is_dry_run=is_dry_run,
        )
        notes = (*again.notes, *checked.terms.notes)
        offers = tuple(replace(one, notes=(*again.notes, *one.notes)) for one in checked.terms.offers)
        terms = replace(checked.terms, notes=notes, offers=offers, applied=again.spec.applied, skipped=again.skipped)
        return replace(checked, terms=self._with_budget_notes(terms, spec.owner))

    def _again(self, old: Job, request: RetryRequest) -> Again:
        """What the new job is like. Raises UserError if the analysis of the old one is to be followed and cannot be."""
        again = Again(spec=replace(old.spec, retry_of=old.id, applied=()))
        if request.only and not request.apply_recommendations:
            raise UserError("`only` names recommendations to apply", hint="add --apply-recommendations")
        if request.apply_recommendations:
            again = follow_analysis(
                again.spec,
                self._report_of(old.id),
                recipe=find(old.spec.recipe, folders=self._settings.recipes).recipe,
                rentals=self._store.rentals.of_job(old.id),
                only=request.only,
                resuming=request.resume,
            )
        if request.changes == RetryChanges():
            return again
        recipe = find(old.spec.recipe, folders=self._settings.recipes).recipe
        return with_changes(again, request.changes, recipe)

    def _propose_again(self, request: RetryRequest) -> Proposal:
        old = self._ended_job(request.job)
        again = self._again(old, request)
        job_id = checked_id(request.id)
        best = self._best_checkpoint(old) if request.resume else None
        state = None if best is None else state_beside(best, self._store.checkpoints.of_job(old.id))
        self._require_key(old.spec.provider)
        again = replace(again, spec=replace(again.spec, id=job_id))
        checked = self._check_again(again, offer=request.offer)
        terms = checked.terms
        spec = replace(
            again.spec,
            unneeded_secrets=checked.unneeded_secrets,
            quote=terms.quote,
            max_seconds=terms.max_seconds,
            max_spend=terms.max_spend,
            resume_from=None if best is None else best.location,
            resume_step=None if best is None else best.step,
            resume_state=None if state is None else state.location,
        )
        proposal = self._store_proposal(spec, terms)
        if not self._is_packed(proposal):
            self._store.proposals.remove(proposal.id)
            self._ended_job(request.job)  # raises NotFound for the dataset
        return proposal

    def _store_proposal(self, spec: JobSpec, terms: Terms) -> Proposal:
        data = dataclasses.asdict(terms)
        kept = self._store.proposals.put(secrets.token_hex(8), spec, data, seconds=_VALID_SECONDS)
        return proposal_of(kept)

    def _is_packed(self, proposal: Proposal) -> bool:
        return Path(self._store.proposals.get(proposal.id).spec.dataset.archive).is_file()

    def _make_spec(self, checked: Checked, request: TrainRequest, packing: Progress | None) -> JobSpec:
        """Pack the dataset locally under its hash, and return the specification."""
        terms = checked.terms
        return JobSpec(
            id=checked.job_id,
            name=terms.name,
            recipe=terms.recipe,
            provider=terms.provider,
            owner=request.owner,
            dataset=self._pack(checked, packing),
            quote=terms.quote,
            max_seconds=terms.max_seconds,
            max_spend=terms.max_spend,
            max_price_per_hour=request.max_price,
            trigger=checked.trigger,
            parameters=terms.parameters,
            unneeded_secrets=checked.unneeded_secrets,
            monitoring=read_monitoring(request.monitoring),
            machine=request.machine,
        )

    def _pack(self, checked: Checked, packing: Progress | None = None) -> DatasetRef:
        folder = self._settings.home / "datasets"
        folder.mkdir(parents=True, exist_ok=True)
        with checked.dataset.opened() as source:
            packed = pack_into(source, folder, progress=packing)
        write_manifest(packed)  # to verify a machine that downloads the files itself
        return DatasetRef(
            source=checked.dataset.source,
            archive=str(packed.path),
            sha256=packed.sha256,
            size=packed.size,
            images=checked.terms.images,
        )

    def _ended_job(self, reference: str) -> Job:
        """The ended job that can be run again. Raises NotFound, IllegalMove."""
        old = self._jobs.find(reference)
        if old.spec.adopted is not None:
            raise IllegalMove(
                f"job {old.id} watched a training that was started by hand; how to start it again is not known",
                hint="start it yourself and adopt it: stationmaster adopt",
            )
        if old.outcome is None:
            raise IllegalMove(f"job {old.id} has not ended", hint=f"stop it first: stationmaster stop {old.id}")
        if not Path(old.spec.dataset.archive).is_file():
            raise NotFound(
                f"the packed dataset of job {old.id} no longer exists",
                hint=f"start a new job: stationmaster train --dataset {shlex.quote(old.spec.dataset.source)}",
            )
        return old

    def _best_checkpoint(self, job: Job) -> Checkpoint:
        if find(job.spec.recipe, folders=self._settings.recipes).recipe.resume is None:
            raise IllegalMove(f"{job.spec.recipe} cannot resume from a checkpoint", hint="leave out --resume")
        safe = [
            one
            for one in self._store.checkpoints.of_job(job.id)
            if is_resumable(one) and is_available(one, self._settings) and not _is_gone(one)
        ]
        if not safe:
            raise NotFound(f"job {job.id} has no verified local checkpoint", hint="leave out --resume")
        best = max(safe, key=lambda one: (one.attempt, one.step is None, one.step or 0))
        if "://" in str(best.location):
            folder = self._settings.home / "jobs" / job.id
            here = copy_file(best, fetched_path(folder, attempt=best.attempt, path=best.path), self._settings)
            best = replace(best, location=str(here))
        return best if best.step is not None else replace(best, step=job.progress.step)

    def _require_key(self, provider: str | None, account: str | None = None) -> None:
        """Raises ConfigInvalid if the provider's machines need a key pair that is not here."""
        found = self._installation.provider(provider, account)
        if isinstance(found, NeedsKey):
            found.require_key()

    def _require_owner(self, name: str | None) -> None:
        """Raises NotFound for an unknown user: the job's notifications would reach no one."""
        if name is None or name == SINGLE_USER or self._store.users.find(name) is not None:
            return
        known = ", ".join([SINGLE_USER, *(user.name for user in self._store.users.listed())])
        raise no_such_user(self._store, name, otherwise=f"known: {known}; add one: stationmaster users add {name}")

    def _with_budget_notes(self, terms: Terms, owner: str | None) -> Terms:
        """With the notes for each offer; those that the owner's budget does not allow are left out."""
        notes = self._budget_notes(terms.quote, owner)
        offers = []
        for one in terms.offers:
            with contextlib.suppress(OutOfCredit, UserError):
                offers.append(replace(one, notes=(*one.notes, *self._budget_notes(one.quote, owner))))
        return replace(terms, notes=(*terms.notes, *notes), offers=tuple(offers))

    def _budget_notes(self, quote: Quote, owner: str | None) -> tuple[str, ...]:
        """Notes to show beside the price. Raises OutOfCredit."""
        return budget_notes(self._store, quote, owner, policy_of(self._settings))


def _asked_card(request: EstimateRequest) -> AskedCard | None:
    if request.gpu is None and request.vram_gib is None:
        return None
    return AskedCard(name=request.gpu, vram_gib=request.vram_gib)


def _is_gone(one: Checkpoint) -> bool:
    return "://" not in str(one.location) and not Path(str(one.location)).is_file()
