"""How far the delivery of a job's model is, kept in the job's memory: pure, so that any worker can go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from stationmaster.model import Desired, Job, Place, Reason

TRIES = 3
"""How often a link of the chain, or a further step of publishing, is tried before the next has its turn."""


def next_link(job: Job, links: tuple[str, ...]) -> str | None:
    """Where the machine should send the model now; None when only home is left, or it is safe elsewhere already."""
    if places(job) or job.desired is Desired.CANCEL_KEEP or job.memory.get("ending") == Reason.OUTBID.value:
        return None  # what is only kept, or goes on in a further attempt, is not published
    return next((link for link in links if link not in _failed(job)), None)


def places(job: Job) -> tuple[Place, ...]:
    """Where this attempt's model lies, verified, besides home."""
    return tuple(Place(**place) for place in _notes(job).get("places", ()))


def with_place(job: Job, place: Place) -> Job:
    others = [asdict(one) for one in places(job) if one.kind != place.kind]
    return _noted(job, places=[*others, asdict(place)])


def with_failure(job: Job, what: str, problem: str) -> Job:
    """The job with a link or step given up for good."""
    return _noted(job, failed={**_failed(job), what: problem})


def has_failed(job: Job, what: str) -> bool:
    return what in _failed(job)


def failures(job: Job) -> Mapping[str, str]:
    return _failed(job)


def with_try(job: Job, what: str) -> tuple[Job, int]:
    """The job with one more try counted, and how many there were before."""
    tries = dict(_notes(job).get("tries", {}))
    before = int(tries.get(what, 0))
    return _noted(job, tries={**tries, what: before + 1}), before


def is_done(job: Job, what: str) -> bool:
    return what in _notes(job).get("done", ())


def with_done(job: Job, what: str, **facts: Any) -> Job:
    return _noted(job, done=[*_notes(job).get("done", ()), what], **facts)


def fact(job: Job, name: str) -> Any:
    return _notes(job).get(name)


def _failed(job: Job) -> Mapping[str, str]:
    found: Mapping[str, str] = _notes(job).get("failed", {})
    return found


def _notes(job: Job) -> Mapping[str, Any]:
    """Those of an earlier attempt say nothing about this one."""
    notes: Mapping[str, Any] = job.memory.get("delivery", {})
    return notes if notes.get("attempt") == job.attempt else {}


def _noted(job: Job, **facts: Any) -> Job:
    return job.remember(delivery={**_notes(job), "attempt": job.attempt, **facts})
