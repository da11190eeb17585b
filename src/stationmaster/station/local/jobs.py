"""Jobs of this installation, in the store."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stationmaster.errors import IllegalMove
from stationmaster.lifecycle import TERMINAL, is_parked, progress_shown
from stationmaster.model import Desired, Job, Request, State
from stationmaster.model.catalogue import HOME
from stationmaster.station.cursor import place_of
from stationmaster.station.jobs import JobView, Wanted
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.interest import Interest
from stationmaster.station.local.job_views import views_of

if TYPE_CHECKING:
    from stationmaster.station.comparison import Comparison
    from stationmaster.station.plans import JobPlan

_LOOK_SECONDS = 1.0
_LEAST_SECONDS = 0.1  # between two looks: a training that is streamed is written far more often

_ASKED = {
    Request.SAVE: "the training saves a checkpoint {WHEN}; the checkpoint is downloaded and the training continues",
    Request.SAMPLE: "the training makes samples {WHEN}; they are downloaded and the training continues",
}


class LocalJobs:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._store = installation.store
        self._interest = Interest(installation.store)

    def find(self, reference: str, *, owner: str | None = None) -> Job:
        found = self._store.jobs.matching(reference, owner=owner)
        if len(found) > 1:
            from stationmaster.station.local.wrong_names import several_jobs  # only for errors

            raise several_jobs(reference, found)
        if not found:
            from stationmaster.station.local.wrong_names import no_such_job  # as above

            raise no_such_job(self._store, reference, owner=owner)
        return found[0]

    def with_id(self, job_id: str) -> Job | None:
        return self._store.jobs.several([job_id]).get(job_id)

    def view(self, job_id: str, *, watching: bool = False) -> JobView:
        job = self._store.jobs.get(job_id)
        if watching:
            self._interest.register(job)
        return views_of(self._store, [job])[0]

    def listed(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[Job]:
        found = self._listed(with_ended=with_ended, limit=limit, owner=owner, state=state, after=after)
        return [replace(job, progress=progress_shown(job)) for job in found]

    def views(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[JobView]:
        found = self._listed(with_ended=with_ended, limit=limit, owner=owner, state=state, after=after)
        return views_of(self._store, found)

    def compare(self, references: Sequence[str]) -> Comparison:
        from stationmaster.station.comparison import compare, require_comparable

        require_comparable(references)
        return compare(views_of(self._store, [self.find(reference) for reference in references]))

    def plan(self, job_id: str) -> JobPlan:
        from stationmaster.station.local.plans import plan_of_job  # recipes are slow to import

        return plan_of_job(self._store.jobs.get(job_id), self._store, self._settings)

    def watch(self, job_id: str) -> Iterator[JobView]:
        with self._store.waker() as waker:
            while True:
                view = self.view(job_id, watching=True)
                yield view
                if view.job.state in TERMINAL:
                    return
                time.sleep(_LEAST_SECONDS)
                waker.wait(_LOOK_SECONDS)

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        job = self._store.jobs.desire(job_id, desired)
        return Wanted(job=job, note=_what_follows(job, job.desired))

    def ask(self, job_id: str, request: Request) -> Wanted:
        from stationmaster.recipes.registry import find  # pydantic's recipe schema, which `jobs` does not need

        recipe = find(self._store.jobs.get(job_id).spec.recipe, folders=self._settings.recipes).recipe
        if request is Request.SAVE and recipe.stop.save is None:
            raise IllegalMove(f"{recipe.reference} cannot save on request", hint="its trainer saves at intervals")
        if request is Request.SAMPLE and (recipe.samples is None or recipe.samples.now is None):
            raise IllegalMove(
                f"{recipe.reference} cannot make samples on request", hint="see its parameters for when it makes them"
            )
        asked = self._store.jobs.ask(job_id, request)
        when = "after the current step" if asked.state is State.EXECUTING else "as soon as it starts"
        return Wanted(job=asked, note=_ASKED[request].format(WHEN=when))

    def remove(self, job_id: str) -> None:
        from stationmaster.control.periodic.dataset_cleanup import forget_dataset  # as above
        from stationmaster.remote.shell import shell_folder

        dataset = self._store.jobs.get(job_id).spec.dataset
        self._store.jobs.remove(job_id)
        forget_dataset(dataset, self._settings.home, self._store)
        self._remove_local_model(job_id)
        shutil.rmtree(self._settings.home / "jobs" / job_id, ignore_errors=True)
        shutil.rmtree(self._settings.home / "thumbnails" / job_id, ignore_errors=True)
        shutil.rmtree(shell_folder(self._settings.home, job_id), ignore_errors=True)

    def _remove_local_model(self, job_id: str) -> None:
        """Remove the model from the catalogue, or only its local copy if it is stored elsewhere too."""
        model = self._store.models.of_job(job_id)
        if model is None:
            return
        elsewhere = tuple(place for place in model.places if place.kind != HOME)
        if elsewhere:
            self._store.models.put(replace(model, places=elsewhere, previews=()))
        else:
            self._store.models.remove(model.slug)

    def _listed(
        self, *, with_ended: bool, limit: int, owner: str | None, state: State | None, after: str | None
    ) -> Sequence[Job]:
        place = None
        if after is not None:
            at, (job_id,) = place_of(after, names=1)
            place = (at, job_id)
        return self._store.jobs.listed(with_ended=with_ended, limit=limit, owner=owner, state=state, after=place)


_BEFORE_TRAINING = (State.QUEUED, State.PROVISIONING, State.TRANSFERRING_DATA)


def _what_follows(job: Job, desired: Desired) -> str:
    if job.spec.adopted is not None and not job.spec.adopted.release and desired is not Desired.STOP:
        first = "its best checkpoint is downloaded, then " if desired is Desired.CANCEL_KEEP else ""
        return f"{first}the job only stops watching; the training and its machine go on"
    if job.spec.adopted is not None and desired is Desired.STOP and job.state in _BEFORE_TRAINING:
        return "the training is stopped as soon as it is reached; then its best checkpoint is downloaded"
    if desired in (Desired.STOP, Desired.CANCEL_KEEP) and is_parked(job):
        return "the stopped machine is started once more to download its model"
    if desired is Desired.STOP and job.state in (State.FETCHING_RESULTS, State.FINALIZING):
        return "the training has already ended and the model is being downloaded; nothing changes"
    if desired is Desired.STOP and job.state is State.EXECUTING:
        return "the training is being stopped; then its best checkpoint is downloaded"
    if job.state is State.QUEUED:
        return "the job ends before it began; nothing was rented"
    if job.state is State.PROVISIONING and desired is not Desired.CANCEL_KEEP:
        return "the job ends before it has trained; if a machine was rented for it, it is being released"
    if desired is Desired.CANCEL_KEEP:
        return "the training is being stopped; then its best checkpoint is downloaded and the machine released"
    return "the machine is being released; nothing is kept"
