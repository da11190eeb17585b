"""Jobs on a server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from stationmaster.errors import NotFound
from stationmaster.lifecycle import TERMINAL
from stationmaster.model import Desired, Job, Request
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.jobs import JobView, Wanted
from stationmaster.station.wire.document import RequestDocument
from stationmaster.station.wire.jobs import CancelRequest, JobDocument, WantedDocument

_LOOK_SECONDS = 1.0


class HttpJobs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, reference: str) -> Job:
        return self._connection.get(path_of_job(reference), JobDocument).job_value()

    def with_id(self, job_id: str) -> Job | None:
        try:
            return self._get(job_id).job_value()
        except NotFound:
            return None

    def view(self, job_id: str) -> JobView:
        return self._get(job_id).value()

    def listed(self, *, with_ended: bool, limit: int = 100) -> Sequence[Job]:
        found = self._connection.items("/api/jobs", JobDocument, most=limit, ended=with_ended, limit=min(limit, 500))
        return [job.job_value() for job in found]

    def watch(self, job_id: str) -> Iterator[JobView]:
        while True:
            view = self.view(job_id)
            yield view
            if view.job.state in TERMINAL:
                return
            time.sleep(_LOOK_SECONDS)

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        if desired is Desired.STOP:
            return self._post(job_id, "stop")
        return self._post(job_id, "cancel", CancelRequest(keep=desired is Desired.CANCEL_KEEP))

    def ask(self, job_id: str, request: Request) -> Wanted:
        return self._post(job_id, request.value)

    def remove(self, job_id: str) -> None:
        self._connection.send("DELETE", path_of_job(job_id), parameters={"exact": True})

    def _get(self, job_id: str) -> JobDocument:
        return self._connection.get(path_of_job(job_id), JobDocument, exact=True)

    def _post(self, job_id: str, verb: str, body: RequestDocument | None = None) -> Wanted:
        path = f"{path_of_job(job_id)}/{verb}"
        return self._connection.post(path, WantedDocument, body, parameters={"exact": True}).value()


def path_of_job(reference: str) -> str:
    """Raises NotFound for what no address can hold; no job has such an id."""
    if reference in ("", ".", ".."):
        raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
    return f"/api/jobs/{segment(reference)}"
