"""Jobs on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stationmaster.errors import NotFound
from stationmaster.lifecycle import TERMINAL
from stationmaster.model import Desired, Job, Request, State
from stationmaster.station import LONGEST_NAME
from stationmaster.station.comparison import Comparison
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.http.following import Waking
from stationmaster.station.jobs import JobView, Wanted
from stationmaster.station.plans import JobPlan
from stationmaster.station.wire.comparison import ComparisonDocument
from stationmaster.station.wire.document import RequestDocument
from stationmaster.station.wire.jobs import CancelRequest, JobDocument, WantedDocument
from stationmaster.station.wire.plans import JobPlanDocument

_LOOK_SECONDS = 1.0
_PAGE = 100
_NOT_MODIFIED = 304


class HttpJobs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, reference: str, *, owner: str | None = None) -> Job:
        if "/" in reference:  # no part of an address, but the name of a job can have it
            return self._named(reference, owner)
        return self._connection.get(path_of_job(reference), JobDocument, owner=owner, log=False).job_value()

    def with_id(self, job_id: str) -> Job | None:
        try:
            return self.view(job_id).job
        except NotFound:
            return None

    def view(self, job_id: str, *, watching: bool = False) -> JobView:
        # Who looks again within seconds does not need the log, which has the heartbeats, each time.
        found = self._connection.get(path_of_job(job_id), JobDocument, exact=True, watch=watching, log=not watching)
        return found.value()

    def listed(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[Job]:
        found = self.views(with_ended=with_ended, limit=limit, owner=owner, state=state, after=after)
        return [view.job for view in found]

    def views(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[JobView]:
        found = self._connection.items(
            "/api/jobs",
            JobDocument,
            most=limit,
            ended=with_ended,
            owner=owner,
            state=state,
            after=after,
            limit=min(limit, _PAGE),
        )
        return [job.value() for job in found]

    def compare(self, references: Sequence[str]) -> Comparison:
        found = self._connection.send("GET", "/api/compare", parameters={"jobs": list(references)})
        return self._connection.read(found, ComparisonDocument).value()

    def plan(self, job_id: str) -> JobPlan:
        return self._connection.get(f"{path_of_job(job_id)}/plan", JobPlanDocument, exact=True).value()

    def watch(self, job_id: str) -> Iterator[JobView]:
        view: JobView | None = None
        tag, read_at = "", 0.0
        with Waking(self._connection, f"{path_of_job(job_id)}/events") as waking:
            while True:
                headers = {"If-None-Match": tag} if tag else {}
                found = self._connection.send(
                    "GET", path_of_job(job_id), parameters={"exact": True, "watch": True, "log": False}, headers=headers
                )
                if view is None or found.status_code != _NOT_MODIFIED:
                    view, read_at = self._connection.read(found, JobDocument).value(), time.monotonic()
                    tag = found.headers.get("ETag", "")
                yield replace(view, now=view.now + time.monotonic() - read_at)
                if view.job.state in TERMINAL:
                    return
                waking.wait(_LOOK_SECONDS, after=view.job.version)

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        if desired is Desired.STOP:
            return self._post(job_id, "stop")
        return self._post(job_id, "cancel", CancelRequest(keep=desired is Desired.CANCEL_KEEP))

    def ask(self, job_id: str, request: Request) -> Wanted:
        return self._post(job_id, request.value)

    def remove(self, job_id: str) -> None:
        self._connection.send("DELETE", path_of_job(job_id), parameters={"exact": True})

    def _named(self, name: str, owner: str | None) -> Job:
        found = self._connection.items("/api/jobs", JobDocument, most=1, name=name, owner=owner, ended=True)
        for job in found:
            return job.job_value()
        raise _not_found(name)

    def _post(self, job_id: str, verb: str, body: RequestDocument | None = None) -> Wanted:
        path = f"{path_of_job(job_id)}/{verb}"
        return self._connection.post(path, WantedDocument, body, parameters={"exact": True}).value()


def path_of_job(reference: str) -> str:
    """The address of a job. Raises NotFound for what no address can hold; no job has such an id."""
    if reference in ("", ".", "..") or len(reference) > LONGEST_NAME:
        raise _not_found(reference)
    return f"/api/jobs/{segment(reference)}"


def _not_found(reference: str) -> NotFound:
    return NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
