"""Keeps a rented machine alive: its own guard stops it when no worker has visited for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from stationmaster.control.flow.world import Visit
from stationmaster.errors import CommandFailed, RemoteError
from stationmaster.event_log import get_logger
from stationmaster.model import Job
from stationmaster.remote.host import Host
from stationmaster.store.writes import NewEvent

log = get_logger("stationmaster.keepalive")

_VISIT_SECONDS = 300.0
_LAST_VISIT_SECONDS = 1.0  # how long a visit may still take after the action has ended
_AFTER_STATUS_SECONDS = 60.0  # until the first visit of an action that follows a status
_SPARE_SECONDS = 600.0  # past the hard limit, for a worker to fetch the model


def alone_seconds(job: Job, *, now: float) -> float:
    """How long the training may go on without a visit: until the job's hard limit, and a little more."""
    if job.deadline_at is None:
        return job.spec.max_seconds
    return max(0.0, job.deadline_at - now) + _SPARE_SECONDS


@dataclass(slots=True)
class Visits:
    """The visits during one action; `unwritten` is why the machine could not record one of them for its guard."""

    unwritten: str | None = None
    is_over: asyncio.Event = field(default_factory=asyncio.Event)  # set between two visits


@asynccontextmanager
async def keepalive(host: Host, visit: Visit, *, after_status: bool = False) -> AsyncIterator[Visits]:
    """Visit the machine at intervals during a long action, so that its guard does not stop it.

    `after_status`: the action follows a status, which was a visit too, so the next one is due in a minute.
    A visit that fails never interrupts the action: at worst the guard stops the machine, which keeps its disk.
    """
    visits = Visits()
    first_seconds = _AFTER_STATUS_SECONDS if after_status else 0.0
    task = asyncio.create_task(_visit_repeatedly(host, visit, visits, first_seconds))
    try:
        yield visits
        # A visit that is interrupted ends the trackside that answers it, and the next action has to start another.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_VISIT_SECONDS):
                await visits.is_over.wait()
    finally:
        task.cancel()
        await asyncio.wait([task])


def unwritable_noted(job: Job, problem: str | None) -> tuple[Job, tuple[NewEvent, ...]]:
    """The job with why its machine could write nothing, if it could not, and the event that says so once."""
    if problem is None or job.machine.unwritable is not None:
        return job, ()
    after = replace(job, machine=replace(job.machine, unwritable=problem))
    return after, (NewEvent(kind="disk_unwritable", payload={"problem": problem}),)


async def _visit_repeatedly(host: Host, visit: Visit, visits: Visits, first_seconds: float) -> None:
    seconds = alone_seconds(visit.job, now=visit.now)
    if first_seconds:
        visits.is_over.set()
        await asyncio.sleep(first_seconds)
    while True:
        visits.is_over.clear()
        try:
            await host.visit(seconds)
        except CommandFailed as problem:
            if visits.unwritten is None and visit.job.machine.unwritable is None:
                log.warning("guard.not_reset", job=visit.job.id, problem=str(problem))
            visits.unwritten = str(problem)
        except RemoteError:
            pass  # the action itself reports a machine that does not answer
        visits.is_over.set()
        await asyncio.sleep(_VISIT_SECONDS)
