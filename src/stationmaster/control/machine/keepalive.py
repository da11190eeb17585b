"""Keeps a rented machine alive: its own guard stops it when no worker has visited for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from stationmaster.control.flow.world import Visit
from stationmaster.errors import CommandFailed, RemoteError
from stationmaster.event_log import get_logger
from stationmaster.model import Job
from stationmaster.remote.host import Host
from stationmaster.store.writes import NewEvent

log = get_logger("stationmaster.keepalive")

_VISIT_SECONDS = 300.0
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


@asynccontextmanager
async def keepalive(host: Host, visit: Visit) -> AsyncIterator[Visits]:
    """Visit the machine at intervals during a long action, so that its guard does not stop it.

    A visit that fails never interrupts the action: at worst the guard stops the machine, which keeps its disk.
    """
    visits = Visits()
    task = asyncio.create_task(_visit_repeatedly(host, visit, visits))
    try:
        yield visits
    finally:
        task.cancel()
        await asyncio.wait([task])


def unwritable_noted(job: Job, problem: str | None) -> tuple[Job, tuple[NewEvent, ...]]:
    """The job with why its machine could write nothing, if it could not, and the event that says so once."""
    if problem is None or job.machine.unwritable is not None:
        return job, ()
    after = replace(job, machine=replace(job.machine, unwritable=problem))
    return after, (NewEvent(kind="disk_unwritable", payload={"problem": problem}),)


async def _visit_repeatedly(host: Host, visit: Visit, visits: Visits) -> None:
    seconds = alone_seconds(visit.job, now=visit.now)
    while True:
        try:
            await host.visit(seconds)
        except CommandFailed as problem:
            if visits.unwritten is None and visit.job.machine.unwritable is None:
                log.warning("guard.not_reset", job=visit.job.id, problem=str(problem))
            visits.unwritten = str(problem)
        except RemoteError:
            pass  # the action itself reports a machine that does not answer
        await asyncio.sleep(_VISIT_SECONDS)
