"""Which ended jobs are old enough to be deleted, and what that would lose: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stationmaster.model import RentalState, State
from stationmaster.model.catalogue import HOME
from stationmaster.station.jobs import Jobs, JobView, job_cursor

_PAGE = 200
_ELSEWHERE = ("s3://", "hf://")


@dataclass(frozen=True, slots=True, kw_only=True)
class OldJob:
    """A job that ended long ago."""

    id: str
    name: str
    shown: str
    ended_at: float
    bytes: int  # of its files that lie here
    kept: str | None  # why it stays; None: it may be deleted


def old_jobs(jobs: Jobs, *, older_than_seconds: float, with_models: bool, owner: str | None = None) -> list[OldJob]:
    """All jobs that ended longer ago than that, the oldest last. Jobs that have not ended are never among them."""
    views = list(_all_views(jobs, owner))
    continued = {view.job.spec.retry_of for view in views if view.job.state is not State.ENDED}
    return [
        OldJob(
            id=view.job.id,
            name=view.job.spec.name,
            shown=view.shown,
            ended_at=view.job.ended_at,
            bytes=sum(one.size for one in view.checkpoints if _lies_here(one.location)),
            kept=_why_kept(view, with_models=with_models, is_continued=view.job.id in continued),
        )
        for view in views
        if view.job.state is State.ENDED
        and view.job.ended_at is not None
        and view.now - view.job.ended_at > older_than_seconds
    ]


def _all_views(jobs: Jobs, owner: str | None) -> Iterator[JobView]:
    after: str | None = None
    while page := jobs.views(with_ended=True, limit=_PAGE, owner=owner, after=after):
        yield from page
        if len(page) < _PAGE:
            return
        after = job_cursor(page[-1].job)


def _why_kept(view: JobView, *, with_models: bool, is_continued: bool) -> str | None:
    if any(rental.state is not RentalState.GONE for rental in view.rentals):
        return "its machine is not confirmed gone"
    if is_continued:
        return "a job that has not ended repeats it"
    if not with_models and _has_only_model_here(view):
        return "its model is stored nowhere else"
    return None


def _has_only_model_here(view: JobView) -> bool:
    """Whether a model, or a checkpoint that could become one, would be lost with the job."""
    if view.trained is not None:
        return all(place.kind == HOME for place in view.trained.places)
    found: Sequence[str | None] = [
        one.location for one in view.checkpoints if one.kind == "checkpoint" and one.verified_at is not None
    ]
    return any(map(_lies_here, found))


def _lies_here(location: str | None) -> bool:
    return location is not None and not location.startswith(_ELSEWHERE)
