"""Jobs entered as faces enter them: proposed, then submitted as proposed."""

from __future__ import annotations

from stationmaster.station.base import Station
from stationmaster.station.proposals import Accepted, RetryRequest, TrainRequest


def submit(station: Station, request: TrainRequest | RetryRequest) -> Accepted:
    """The job of the request; one that is there already under its id is left as it is."""
    if request.id is not None and (there := station.jobs.with_id(request.id)) is not None:
        return Accepted(job=there, created=False)
    return station.proposals.submit(station.proposals.propose(request).id)


def retry(station: Station, job: str, *, resume: bool = False, new_id: str | None = None) -> Accepted:
    return submit(station, RetryRequest(job=job, resume=resume, id=new_id))
