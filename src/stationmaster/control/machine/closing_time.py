"""Closing time: how long a machine may still bill once its training has to end, whatever the machine reports.

The clock starts with the reason to end (a person's stop, the limit, a stall) and counts only the time in which the
provider answers and lists the machine as running: then our own connection works, and an outage of it does not count
against a model. Three limits apply: for the stop to take effect, for the fetch, and for everything.
Time in which a machine is stopped and cannot be started is counted separately: its GPU does not bill meanwhile.
"""

from __future__ import annotations

import math
from dataclasses import replace

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import is_late, wants_out
from stationmaster.control.machine.sight import ANSWERING, Fate, Sighting
from stationmaster.model import Closing, Job

_STOP_SHARE = 2 / 3  # of the time beside the fetch; the rest is for what comes after it
_LOOK_SECONDS = 15.0
_LOOK_SPARE_SECONDS = 120.0  # between two looks, on top of the longest action


def is_closing(job: Job) -> bool:
    return job.ending.closing is not None


def closing_begun(job: Job, *, now: float) -> Job:
    """The job with its clock started now, unless it runs already."""
    return job if is_closing(job) else _noted(job, Closing(spent=0.0, at=now))


def closing_if_due(job: Job, *, now: float) -> Job:
    """The job with its clock started if a person asked for the end or the limit has passed."""
    return closing_begun(job, now=now) if wants_out(job) or is_late(job, now=now) else job


def look_is_due(job: Job, policy: Policy, *, now: float) -> bool:
    """Whether the provider has to be asked again about the machine; not between every two small files."""
    often = min(_LOOK_SECONDS, policy.bound_seconds / 100)
    last = last_counted(job)
    return last is not None and now - last >= often


def closing_counted(job: Job, sighting: Sighting, policy: Policy, *, now: float) -> Job:
    """The job with its clock moved on to now. A gap without a look, as after a suspend, counts as one long action."""
    known = job.ending.closing
    if known is None or sighting is ANSWERING:
        return job  # the next look at the provider counts this time too
    passed = max(0.0, min(now - known.at, longest_action(policy) + _LOOK_SPARE_SECONDS))
    if sighting.fate is Fate.THERE and sighting.machine is not None:
        return _noted(job, replace(known, spent=known.spent + passed, at=now))
    if sighting.fate is Fate.STOPPED:
        return _noted(job, replace(known, stopped=known.stopped + passed, at=now))
    return _noted(job, replace(known, at=now))


def closing_forgotten(job: Job) -> Job:
    """A person asked again: the whole time starts anew."""
    return _noted(job, None)


def last_counted(job: Job) -> float | None:
    """When a worker last looked at a job that has to end."""
    return None if job.ending.closing is None else job.ending.closing.at


def stop_is_over(job: Job, policy: Policy) -> bool:
    """Whether the training has had its time to save and stop; whatever it reports now, the wait is over."""
    return _spent(job) >= stop_limit(policy)


def fetch_is_over(job: Job, policy: Policy) -> bool:
    """Whether the fetch of the model has had its time."""
    return _spent(job) >= fetch_limit(policy)


def is_stopped_for_good(job: Job, policy: Policy) -> bool:
    """Whether the machine is stopped and could not be started for as long as a job has to end."""
    closing = job.ending.closing
    return closing is not None and closing.stopped >= policy.bound_seconds


def closing_is_over(job: Job, bound_seconds: float) -> bool:
    """Whether all time is used up: the GPU must not bill any longer."""
    return _spent(job) >= bound_seconds


def stop_limit(policy: Policy) -> float:
    return policy.limits.closing * _STOP_SHARE


def fetch_limit(policy: Policy) -> float:
    return stop_limit(policy) + policy.limits.fetch


def longest_action(policy: Policy) -> float:
    """Limit of one try at one file: half of the fetch, so that a destination that never answers leaves time for a local
    download."""
    return policy.limits.fetch / 2


def action_limit(job: Job, policy: Policy, *, until: float) -> float | None:
    """How long the next action on the machine may take before the clock reaches `until`; None: no limit."""
    return min(longest_action(policy), seconds_left(job, until=until)) if is_closing(job) else None


def stop_seconds_left(job: Job, policy: Policy) -> float | None:
    """How long the training may still take to save and stop; None while the clock does not run."""
    return seconds_left(job, until=stop_limit(policy)) if is_closing(job) else None


def seconds_left(job: Job, *, until: float) -> float:
    """Seconds left before the clock reaches `until`; infinite while it does not run."""
    return max(0.0, until - _spent(job)) if is_closing(job) else math.inf


def _spent(job: Job) -> float:
    return 0.0 if job.ending.closing is None else job.ending.closing.spent


def _noted(job: Job, closing: Closing | None) -> Job:
    return replace(job, ending=replace(job.ending, closing=closing))
