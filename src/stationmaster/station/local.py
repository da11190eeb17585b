"""The station on the store itself: what a person with a laptop uses, and what the API serves.

What only some questions need is imported by those that need it: recipes, providers and outlets take longer to load than
`stationmaster jobs` takes to answer.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stationmaster.control.billing.breakdown import shares_of
from stationmaster.control.messages.address_book import SINGLE_USER
from stationmaster.control.opening import open_store
from stationmaster.control.rental.access_notes import access_from_json
from stationmaster.errors import IllegalMove, NotFound
from stationmaster.lifecycle import TERMINAL, is_parked, shown, stage
from stationmaster.model import (
    Access,
    Checkpoint,
    Desired,
    Event,
    Job,
    JobSpec,
    LogChunk,
    Quote,
    Request,
    State,
    StepReading,
    TrainedModel,
)
from stationmaster.money import MicroDollars
from stationmaster.settings import Settings
from stationmaster.station.base import Accepted, JobView, PaidLine, Preview, Terms, TrainRequest, Wanted

if TYPE_CHECKING:
    from stationmaster.providers.base import Pause, Provider
    from stationmaster.station.submit import Checked

_INTEREST_SECONDS = 10.0
_LOOK_SECONDS = 1.0


class LocalStation:
    def __init__(self, settings: Settings, environ: Mapping[str, str], *, pause: Pause = asyncio.sleep) -> None:
        """`pause` is how a provider's rate limit is waited for, which a person should see."""
        self.settings = settings
        self._environ = environ
        self._pause = pause
        self.store = open_store(settings)
        self._watcher = f"{os.getpid()}-{secrets.token_hex(3)}"

    def preview(self, request: TrainRequest) -> Preview:
        from stationmaster.station.submit import preview_of

        self._require_owner(request.owner)
        checked = self._checked(request)
        notes = (*checked.notes, *self._purse_notes(checked.quote, request.owner))
        return preview_of(replace(checked, notes=notes), request)

    def quote(
        self,
        recipe: str,
        parameters: Mapping[str, Any],
        *,
        images: int,
        provider: str | None = None,
        max_price: MicroDollars | None = None,
    ) -> tuple[Quote, tuple[str, ...]]:
        """What a training on so many images would take and cost now, and what was assumed. Writes nothing."""
        from stationmaster.recipes.parameters import resolve
        from stationmaster.recipes.registry import find
        from stationmaster.station.limits import limits_of
        from stationmaster.station.quoting import Work, quote_work

        found = find(recipe, folders=self.settings.recipes).recipe
        work = Work(recipe=found, parameters=resolve(found, parameters), images=images, max_price=max_price)
        past = self.store.finished_runs.of_recipe
        quote, notes = quote_work(work, self.provider(provider), past_runs=past, home=self.settings.home)
        return quote, (*notes, *limits_of(quote, self.settings).notes)

    def require_key(self, provider: str | None, account: str | None = None) -> None:
        from stationmaster.providers.base import NeedsKey

        found = self.provider(provider, account)
        if isinstance(found, NeedsKey):
            found.require_key()

    def submit(self, request: TrainRequest) -> Accepted:
        from stationmaster.station.submit import spec_of

        if (found := self._submitted(request.id)) is not None:
            return Accepted(job=found, created=False)
        self._require_owner(request.owner)
        self.require_key(request.provider, request.account)
        checked = self._checked(request)
        self._purse_notes(checked.quote, request.owner)  # before the dataset is packed in vain
        spec = spec_of(checked, request, self.settings.home / "datasets")
        accepted = self._entered(spec)
        if not Path(spec.dataset.archive).is_file():  # removed meanwhile, with the last other job that had it
            spec_of(checked, request, self.settings.home / "datasets")
        return accepted

    def retried(self, reference: str) -> Job:
        """The ended job that can be run again. Raises NotFound, IllegalMove."""
        old = self.find(reference)
        if old.outcome is None:
            raise IllegalMove(f"job {old.id} has not ended", hint=f"stop it first: stationmaster stop {old.id}")
        if not Path(old.spec.dataset.archive).is_file():
            raise NotFound(
                f"the packed dataset of job {old.id} is no longer at home",
                hint=f"start it anew: stationmaster train --dataset {old.spec.dataset.source}",
            )
        return old

    def retry_terms(self, reference: str) -> Terms:
        from stationmaster.station.submit import terms_again

        spec = self.retried(reference).spec
        past = self.store.finished_runs.of_recipe
        terms = terms_again(spec, self.settings, self.provider(spec.provider), past_runs=past)
        return replace(terms, notes=(*terms.notes, *self._purse_notes(terms.quote, spec.owner)))

    def retry(
        self, reference: str, *, resume: bool = False, new_id: str | None = None, terms: Terms | None = None
    ) -> Accepted:
        from stationmaster.station.artifacts import state_beside
        from stationmaster.station.submit import checked_id

        if (found := self._submitted(new_id)) is not None:
            return Accepted(job=found, created=False)
        old = self.retried(reference)
        new_id = checked_id(new_id)
        terms = terms or self.retry_terms(old.id)
        best = self._best_checkpoint(old) if resume else None
        state = None if best is None else state_beside(best, self.store.checkpoints.of_job(old.id))
        spec = replace(
            old.spec,
            id=new_id,
            retry_of=old.id,
            quote=terms.quote,
            max_seconds=terms.max_seconds,
            max_spend=terms.max_spend,
            resume_from=None if best is None else best.location,
            resume_step=None if best is None else best.step,
            resume_state=None if state is None else state.location,
        )
        return self._entered(spec)

    def find(self, reference: str) -> Job:
        found = self.store.jobs.matching(reference)
        if len(found) > 1:
            raise NotFound(f"{reference} is the beginning of {len(found)} jobs' ids", hint="write more of the id")
        if not found:
            raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
        return found[0]

    def view(self, job_id: str) -> JobView:
        job = self.store.jobs.get(job_id)
        now = self.store.now()
        costs = tuple(self.store.costs.of_job(job_id))
        return JobView(
            job=job,
            now=now,
            shown=shown(job, now=now),
            stage=stage(job),
            cost=MicroDollars(sum(line.so_far(now=now) for line in costs)),
            rentals=tuple(self.store.rentals.of_job(job_id)),
            costs=costs,
            checkpoints=tuple(self.store.checkpoints.of_job(job_id)),
            alerts=tuple(self.store.alerts.open(job_id)),
            access=_access(job),
            trained=self.store.models.of_job(job_id) if job.memory.get("model_file") else None,
        )

    def costs(self, job_id: str | None = None) -> list[PaidLine]:
        lines = self.store.costs.listed() if job_id is None else self.store.costs.of_job(job_id)
        now = self.store.now()
        told = {name: self.events(name) for name in {line.job_id for line in lines}}
        return [PaidLine(line=line, shares=shares_of(line, told[line.job_id], now=now)) for line in lines]

    def jobs(self, *, with_ended: bool, limit: int = 100) -> Sequence[Job]:
        return self.store.jobs.listed(with_ended=with_ended, limit=limit)

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        job = self.store.jobs.desire(job_id, desired)
        return Wanted(job=job, note=_what_follows(job, job.desired))

    def ask(self, job_id: str, request: Request) -> Wanted:
        from stationmaster.recipes.registry import find

        job = self.store.jobs.get(job_id)
        recipe = find(job.spec.recipe, folders=self.settings.recipes).recipe
        if request is Request.SAVE and recipe.stop.save is None:
            raise IllegalMove(
                f"{recipe.reference} cannot be asked to save", hint="its trainer saves by itself now and then"
            )
        if request is Request.SAMPLE and (recipe.samples is None or recipe.samples.now is None):
            raise IllegalMove(
                f"{recipe.reference} cannot be asked for samples", hint="see its parameters for when it makes some"
            )
        asked = self.store.jobs.ask(job_id, request)
        when = "after its running step" if asked.state is State.EXECUTING else "as soon as it trains"
        return Wanted(job=asked, note=_ASKED[request].format(WHEN=when))

    def remove(self, job_id: str) -> None:
        from stationmaster.control.leftovers import forget_dataset
        from stationmaster.remote.shell import shell_folder
        from stationmaster.station.models import forget_home

        dataset = self.store.jobs.get(job_id).spec.dataset
        self.store.jobs.remove(job_id)
        forget_dataset(dataset, self.settings.home, self.store)
        forget_home(job_id, self.store)
        shutil.rmtree(self.settings.home / "jobs" / job_id, ignore_errors=True)
        shutil.rmtree(shell_folder(self.settings.home, job_id), ignore_errors=True)

    def events(self, job_id: str, *, after_version: int = 0) -> Sequence[Event]:
        found: list[Event] = []
        while page := self.store.events.of_job(job_id, after_version=after_version):
            found += page
            after_version = page[-1].job_version
        return found

    def logs(self, job_id: str, *, after_seq: int = 0) -> Sequence[tuple[int, LogChunk]]:
        return self.store.logs.of_job(job_id, after_seq=after_seq)

    def readings(self, job_id: str) -> Sequence[StepReading]:
        return self.store.readings.of_job(job_id)

    def watch(self, job_id: str) -> Iterator[JobView]:
        with self.store.waker() as waker:
            asked = 0.0
            while True:
                view = self.view(job_id)
                yield view
                if view.job.state in TERMINAL:
                    return
                if view.job.state is State.EXECUTING and time.monotonic() - asked > _INTEREST_SECONDS / 2:
                    self.store.interests.express(job_id, self._watcher, seconds=_INTEREST_SECONDS)
                    asked = time.monotonic()
                waker.wait(_LOOK_SECONDS)

    def pull(self, job_id: str, target: Path) -> Sequence[Path]:
        from stationmaster.station.artifacts import can_be_had, copied, is_for_people, places, require_no_links

        files = self.store.checkpoints.of_job(job_id)
        safe = [one for one in files if is_for_people(one) and can_be_had(one, self.settings)]
        if not safe:
            raise NotFound(
                f"job {job_id} has nothing at home yet", hint=f"see how it stands: stationmaster show {job_id}"
            )
        goals = places(safe, target)
        for goal in goals:
            require_no_links(goal, target)
        return [copied(one, goal, self.settings) for one, goal in zip(safe, goals, strict=True)]

    def models(self) -> Sequence[TrainedModel]:
        return self.store.models.listed()

    def model(self, reference: str) -> TrainedModel:
        found = self.store.models.matching(reference)
        if not found:
            raise NotFound(f"there is no model {reference}", hint="run `stationmaster models list` to see them")
        if len(found) > 1:
            slugs = ", ".join(model.slug for model in found[:5])
            raise NotFound(f"{reference} may be any of {len(found)} models", hint=f"name one of them: {slugs}")
        return found[0]

    def publish(self, reference: str) -> TrainedModel:
        from stationmaster.station.models import publish_model

        return publish_model(self.model(reference), self.settings, self.store)

    def download(self, reference: str, target: Path) -> Path:
        from stationmaster.station.models import download_model

        return download_model(self.model(reference), target, self.settings, self.store)

    def now(self) -> float:
        return self.store.now()

    def close(self) -> None:
        self.store.close()

    def provider(self, name: str | None, account: str | None = None) -> Provider:
        """The provider of this name, else the settings' one, under one of its accounts. Raises ConfigInvalid."""
        from stationmaster.control.providers import find_provider

        wanted = name or self.settings.provider
        return find_provider(wanted, self.settings, self._environ, self.store, account=account, pause=self._pause)

    def _entered(self, spec: JobSpec) -> Accepted:
        """The one way of a new job into the store, however it came about: for somebody known, who can pay for it.

        Raises NotFound, OutOfCredit, UserError.
        """
        self._require_owner(spec.owner)
        self._purse_notes(spec.quote, spec.owner)
        submitted = self.store.jobs.submit(spec)
        return Accepted(job=submitted.job, created=submitted.created)

    def _purse_notes(self, quote: Quote, owner: str | None) -> tuple[str, ...]:
        from stationmaster.control.billing.asking import purse_notes
        from stationmaster.control.policy import policy_of

        return purse_notes(self.store, quote, owner, policy_of(self.settings))

    def _submitted(self, job_id: str | None) -> Job | None:
        """The job with this very id, if it was submitted before: then nothing is checked, asked for or changed."""
        found = [] if job_id is None else self.store.jobs.matching(job_id)
        return found[0] if found and found[0].id == job_id else None

    def _checked(self, request: TrainRequest) -> Checked:
        from stationmaster.station.submit import check_request

        provider = self.provider(request.provider, request.account)
        return check_request(request, self.settings, provider, past_runs=self.store.finished_runs.of_recipe)

    def _require_owner(self, name: str | None) -> None:
        """A job's messages must reach somebody. Raises NotFound for a person whom nobody has added."""
        if name is None or name == SINGLE_USER or self.store.users.find(name) is not None:
            return
        known = ", ".join([SINGLE_USER, *(user.name for user in self.store.users.listed())])
        raise NotFound(f"there is no user {name}", hint=f"known: {known}; add one: stationmaster users add {name}")

    def _best_checkpoint(self, job: Job) -> Checkpoint:
        from stationmaster.control.training.job_folder import fetched_path
        from stationmaster.recipes.registry import find
        from stationmaster.station.artifacts import can_be_had, copied, is_resumable

        if find(job.spec.recipe, folders=self.settings.recipes).recipe.resume is None:
            raise IllegalMove(f"{job.spec.recipe} cannot go on from a checkpoint", hint="leave out --resume")
        safe = [
            one
            for one in self.store.checkpoints.of_job(job.id)
            if is_resumable(one) and can_be_had(one, self.settings) and not _is_gone(one)
        ]
        if not safe:
            raise NotFound(f"job {job.id} has no verified checkpoint at home", hint="leave out --resume")
        best = max(safe, key=lambda one: (one.attempt, one.step is None, one.step or 0))
        if "://" in str(best.location):
            folder = self.settings.home / "jobs" / job.id
            here = copied(best, fetched_path(folder, attempt=best.attempt, path=best.path), self.settings)
            best = replace(best, location=str(here))
        return best if best.step is not None else replace(best, step=job.progress.step)


_ASKED = {
    Request.SAVE: "the training is asked to save {WHEN}; the checkpoint comes home, and it goes on",
    Request.SAMPLE: "the training is asked for samples {WHEN}; they come home, and it goes on",
}


def _access(job: Job) -> Access | None:
    known = job.memory.get("access")
    return access_from_json(known) if known and job.state is not State.ENDED else None


def _what_follows(job: Job, desired: Desired) -> str:
    if desired in (Desired.STOP, Desired.CANCEL_KEEP) and is_parked(job):
        return "the stopped machine is started once more, so that its model can be fetched"
    if desired is Desired.STOP and job.state in (State.FETCHING_RESULTS, State.FINALIZING):
        return "the training is over already and the model is being brought home; nothing changes"
    if desired is Desired.STOP and job.state is State.EXECUTING:
        return "the training is being stopped; its best checkpoint will be brought home"
    if desired is Desired.CANCEL_KEEP:
        return "the training is being stopped; its best checkpoint will be brought home, then the machine goes"
    return "the machine is being given back; nothing is kept"


def _is_gone(one: Checkpoint) -> bool:
    return "://" not in str(one.location) and not Path(str(one.location)).is_file()
