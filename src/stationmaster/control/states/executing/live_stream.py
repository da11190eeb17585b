"""Streams the status of a training while a user watches it, instead of polling.

A dropped stream, no watcher left, or anything that needs more than reading leads back to polling. The log offsets are
recorded with every piece, so no line is lost or doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.keepalive import keepalive
from stationmaster.control.states.executing.log_watch import since_of
from stationmaster.errors import RemoteError
from stationmaster.model import Job
from stationmaster.remote.status import Status
from stationmaster.store.writes import Write, can_join, joined

_WATCHERS_SECONDS = 3.0  # interval between checks whether a user still watches
_INTERVAL_SECONDS = 0.05  # interval between the machine's own checks for something new
_MOST_WAITING = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """A user watches: stream the status and record it as it comes."""


class Judge(Protocol):
    """Decides on a status: what to write, and whether following continues."""

    async def __call__(self, visit: Visit, status: Status) -> tuple[Write, bool]: ...


async def follow(job: Job, visit: Visit, world: World, judge: Judge) -> Write:
    """Record every status as it comes; return the write that ends the visit when following ends.

    Statuses that arrive during one write are joined in the next: with a slow store the writes get larger, not later
    and later.
    """
    host = host_of(job, world)
    clock = _clock(visit)
    asked = boottime()
    since = since_of(job, visit.monitoring)
    try:
        async with (
            keepalive(host, replace(visit, job=job)),
            aclosing(host.follow(since, interval_seconds=_INTERVAL_SECONDS)) as statuses,
            _inbox(statuses) as inbox,
        ):
            while batch := await inbox.take():
                write: Write | None = None
                for status in batch:
                    found, goes_on = await judge(replace(visit, job=job, now=clock()), status)
                    if write is not None and not can_join(write, found):
                        await visit.record(write)
                        write = None
                    write = found if write is None else joined(write, found)
                    job = write.job
                    if not goes_on:
                        return replace(write, due_in=0.0) if write.due_in is not None else write
                assert write is not None, "a batch is never empty"
                await visit.record(write)
                if boottime() - asked > _WATCHERS_SECONDS:
                    asked = boottime()
                    if not await world.ask_store(world.store.watchers.is_watched, job.id):
                        return wait(job, write.due_in or 0.0)
    except RemoteError:
        await drop_connection(job, world)
    return wait(job, 0.0)


class _Inbox:
    """Statuses that wait to be processed; while it is full the machine waits, then sends all that is new at once."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Status | RemoteError | None] = asyncio.Queue(_MOST_WAITING)

    async def fill(self, statuses: AsyncIterator[Status]) -> None:
        try:
            async for status in statuses:
                await self._waiting.put(status)
        except RemoteError as problem:
            await self._waiting.put(problem)
        else:
            await self._waiting.put(None)

    async def take(self) -> list[Status]:
        """All waiting statuses, at least one; empty when the stream has ended. Raises the RemoteError that broke it."""
        batch: list[Status] = []
        found = await self._waiting.get()
        while isinstance(found, Status):
            batch.append(found)
            if self._waiting.empty():
                return batch
            found = self._waiting.get_nowait()
        if not batch and isinstance(found, RemoteError):
            raise found
        if batch:
            self._waiting.put_nowait(found)  # after what came before it
        return batch


@asynccontextmanager
async def _inbox(statuses: AsyncIterator[Status]) -> AsyncIterator[_Inbox]:
    inbox = _Inbox()
    filling = asyncio.create_task(inbox.fill(statuses))
    try:
        yield inbox
    finally:
        filling.cancel()
        await asyncio.wait([filling])


def _clock(visit: Visit) -> Callable[[], float]:
    """The database's time, continued from the claim with our own clock."""
    began = boottime()
    return lambda: visit.now + (boottime() - began)
