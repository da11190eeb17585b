"""The checks that all nouns of an owned station share."""

from __future__ import annotations

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import Caller, Job, Right
from stationmaster.station.jobs import Jobs

_MEANINGS = {
    Right.READ: "may see nothing",
    Right.TRAIN: "may only look",
    Right.MANAGE: "is not an administrator",
}


def require(caller: Caller, right: Right) -> None:
    """Raises Forbidden if the caller lacks the right."""
    if not caller.may(right):
        is_token = caller.token is not None
        raise Forbidden(
            f"{'this token of ' if is_token else ''}{caller.user} {_MEANINGS[right]}",
            hint="an administrator can create a token with more rights: stationmaster tokens create",
        )


def own_job(caller: Caller, jobs: Jobs, job_id: str) -> Job:
    """The caller's job with exactly this id. Raises NotFound, for another's job as for one that does not exist."""
    found = jobs.with_id(job_id)
    if found is None or not caller.owns(found.spec.owner):
        raise NotFound(f"there is no job {job_id}", hint="run `stationmaster jobs --all` to see them")
    return found
