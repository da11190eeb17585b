"""Following a training live while somebody watches: the machine speaks when something happens, and is not asked.

What falls away leads back to polling: a dropped stream, no watcher left, or anything that needs more than reading.
The offsets are recorded with every piece, so no line is lost or doubled on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from stationmaster.control.rental.company import company
from stationmaster.control.rental.machine import drop_connection, host_of
from stationmaster.control.step import wait
from stationmaster.control.world import Visit, World, boottime
from stationmaster.errors import RemoteError
from stationmaster.model import Job
from stationmaster.remote.host import Since, Status
from stationmaster.store.writes import Write

_WATCHERS_SECONDS = 3.0  # how often it is asked whether anybody still watches


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Somebody watches: stay with the machine and write down what it says as it says it."""


class Judge(Protocol):
    """What a status means for the job: what to write, and whether there is nothing to do but go on following."""

    def __call__(self, visit: Visit, status: Status) -> tuple[Write, bool]: ...


async def follow(job: Job, visit: Visit, world: World, judge: Judge) -> Write:
    """Record every status as it comes; the write that ends the visit when following has to end."""
    host = host_of(job, world)
    clock = _clock(visit)
    asked = boottime()
    try:
        async with (
            company(host, replace(visit, job=job)),
            aclosing(host.follow(Since.from_json(job.memory.get("since")))) as statuses,
        ):
            async for status in statuses:
                write, goes_on = judge(replace(visit, job=job, now=clock()), status)
                if not goes_on:
                    return replace(write, due_in=0.0) if write.due_in is not None else write
                await visit.record(write)
                job = write.job
                if boottime() - asked > _WATCHERS_SECONDS:
                    asked = boottime()
                    if not await world.ask_store(world.store.interests.watched, job.id):
                        return wait(job, write.due_in or 0.0)
    except RemoteError:
        await drop_connection(job, world)
    return wait(job, 0.0)


def _clock(visit: Visit) -> Callable[[], float]:
    """The database's time, taken on from the claim by our own clock."""
    began = boottime()
    return lambda: visit.now + (boottime() - began)
