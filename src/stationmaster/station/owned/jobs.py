"""A user's own jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stationmaster.errors import NotFound
from stationmaster.model import Caller, Desired, Job, Request, Right, State
from stationmaster.station.comparison import Comparison
from stationmaster.station.jobs import Jobs, JobView, Wanted
from stationmaster.station.owned.rights import own_job, require
from stationmaster.station.owned.server_paths import job_without_paths, view_without_paths
from stationmaster.station.plans import JobPlan


class OwnedJobs:
    def __init__(self, caller: Caller, jobs: Jobs) -> None:
        self._caller = caller
        self._all = jobs

    def find(self, reference: str, *, owner: str | None = None) -> Job:
        if owner not in (None, self._caller.user):
            raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
        return job_without_paths(self._all.find(reference, owner=self._caller.user))

    def with_id(self, job_id: str) -> Job | None:
        found = self._all.with_id(job_id)
        return job_without_paths(found) if found is not None and self._caller.owns(found.spec.owner) else None

    def view(self, job_id: str, *, watching: bool = False) -> JobView:
        self._require_own(job_id)
        return view_without_paths(self._all.view(job_id, watching=watching))

    def listed(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[Job]:
        if owner not in (None, self._caller.user):
            return []
        found = self._all.listed(with_ended=with_ended, limit=limit, owner=self._caller.user, state=state, after=after)
        return [job_without_paths(job) for job in found]

    def views(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[JobView]:
        if owner not in (None, self._caller.user):
            return []
        found = self._all.views(with_ended=with_ended, limit=limit, owner=self._caller.user, state=state, after=after)
        return [view_without_paths(view) for view in found]

    def compare(self, references: Sequence[str]) -> Comparison:
        return self._all.compare([self.find(reference).id for reference in references])

    def plan(self, job_id: str) -> JobPlan:
        self._require_own(job_id)
        return self._all.plan(job_id)

    def watch(self, job_id: str) -> Iterator[JobView]:
        self._require_own(job_id)
        for view in self._all.watch(job_id):
            yield view_without_paths(view)

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        self._require_change(job_id)
        return _without_paths(self._all.desire(job_id, desired))

    def ask(self, job_id: str, request: Request) -> Wanted:
        self._require_change(job_id)
        return _without_paths(self._all.ask(job_id, request))

    def remove(self, job_id: str) -> None:
        self._require_change(job_id)
        self._all.remove(job_id)

    def _require_own(self, job_id: str) -> None:
        own_job(self._caller, self._all, job_id)

    def _require_change(self, job_id: str) -> None:
        require(self._caller, Right.TRAIN)
        self._require_own(job_id)


def _without_paths(wanted: Wanted) -> Wanted:
    return replace(wanted, job=job_without_paths(wanted.job))
