"""How a route names the job that it is about."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query

from stationmaster.api.visit import Visit
from stationmaster.errors import NotFound

JobReference = Annotated[
    str, Path(description="Id of the job, the beginning of it, or the job's name.", min_length=1, max_length=200)
]
Exact = Annotated[bool, Query(description="Accept only the whole id.")]


def job_id(visit: Visit, reference: str, exact: bool) -> str:
    """The id of the job that the caller means. Raises NotFound."""
    if not exact:
        return visit.station.jobs.find(reference).id
    if visit.station.jobs.with_id(reference) is None:
        raise NotFound(f"there is no job {reference}", hint="run `stationmaster jobs --all` to see them")
    return reference
