"""The recipe's cleanup: it runs before a machine is released, also after a failure, and within a time limit.

The request and its result are kept with the attempt, so that another worker can continue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.closing_time import seconds_left
from stationmaster.control.machine.release import Judgement, Next
from stationmaster.errors import CommandFailed, RemoteError, UserError
from stationmaster.model import Cleanup, Job
from stationmaster.providers.base import CanStop
from stationmaster.recipes.schema import Recipe
from stationmaster.store.writes import NewEvent, Write

_LOOK_SECONDS = 1.0
_SILENCE_SECONDS = 60.0  # how long to wait for a machine that does not answer
_MARGIN_SECONDS = 60.0  # for the stop before the cleanup, and for our own polling


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """Start the cleanup, or check it; repeating it is harmless."""


def cleanup_limit(visit: Visit, world: World) -> float | None:
    """How long this job's cleanup may take; None if there is nothing to clean up. Only reads the recipe."""
    job = visit.job
    if job.machine.access is None:
        return None
    try:
        recipe = visit.recipe
    except UserError:
        return None  # a recipe that was removed must not keep a machine
    if not recipe.cleanup and recipe.container is None:
        return None
    limit = min(world.policy.limits.cleanup, _declared_seconds(recipe)) + _MARGIN_SECONDS
    if not isinstance(world.provider(job.spec.provider), CanStop):
        return limit  # one of our own machines, which costs nothing
    return min(limit, seconds_left(job, until=world.policy.bound_seconds))


def needs_cleanup(job: Job, judgements: Iterable[Judgement], *, limit: float | None, now: float) -> bool:
    """Whether the machine still exists and its cleanup is neither finished nor out of time."""
    begun = job.machine.cleanup or Cleanup(since=now)
    if limit is None or begun.state:
        return False
    there = any(each.rental.label == job.machine.label and each.next is Next.DESTROY for each in judgements)
    return there and now - begun.since < limit


def with_cleanup_begun(job: Job, *, now: float) -> Job:
    return job if job.machine.cleanup is not None else _with_cleanup(job, Cleanup(since=now))


async def clean_up(job: Job, visit: Visit, world: World) -> Write:
    """Start or check the cleanup; its result is recorded once."""
    begun = job.machine.cleanup
    assert begun is not None, "the request is recorded first"
    try:
        seen = await host_of(job, world).cleanup(min(visit.recipe.stop.grace, _MARGIN_SECONDS / 2))
    except CommandFailed as problem:  # a disk that takes nothing; or no plan was ever sent to the machine
        return _finish_cleanup(job, begun, "impossible", problem=str(problem))
    except RemoteError as problem:
        await drop_connection(job, world)
        if visit.now - begun.since < _SILENCE_SECONDS:
            return wait(job, _LOOK_SECONDS)
        return _finish_cleanup(job, begun, "unreachable", problem=str(problem))
    if seen.state == "running":
        return wait(job, _LOOK_SECONDS)
    return _finish_cleanup(job, begun, seen.state, failed=list(seen.failed), tail=seen.tail)


def _with_cleanup(job: Job, cleanup: Cleanup) -> Job:
    return replace(job, machine=replace(job.machine, cleanup=cleanup))


def _finish_cleanup(job: Job, begun: Cleanup, state: str, **more: Any) -> Write:
    after = _with_cleanup(job, replace(begun, state=state))
    is_news = state != "nothing" and (state != "impossible" or job.watching.trained)
    events = (NewEvent(kind="cleanup", payload={"state": state, **more}),) if is_news else ()
    return wait(after, 0.0, events=events)


def _declared_seconds(recipe: Recipe) -> float:
    return sum(step.tries * (step.timeout + max(step.backoff)) for step in recipe.cleanup)
