"""The progress of a transfer: kept with the job for watchers, and recorded as an event from time to time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace

from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit
from stationmaster.model import Job, Transfer
from stationmaster.remote.base import Progress
from stationmaster.store.writes import NewEvent

_LOOK_SECONDS = 2.0
_EVENT_SECONDS = 30.0


@dataclass(slots=True, kw_only=True)
class Meter:
    """Bytes transferred, and the rate since the current file began; bytes that were there before do not count."""

    began: float
    done: int = 0
    total: int = 0
    _first: int | None = field(default=None)

    def moved(self, done: int, total: int, *, now: float) -> None:
        if self._first is None or total != self.total or done < self.done:
            self.began, self._first = now, done
        self.done, self.total = done, total

    def reading(self, way: str, *, now: float) -> Transfer:
        seconds = now - self.began
        rate = (self.done - (self._first or 0)) / seconds if seconds > 0 else 0.0
        left = (self.total - self.done) / rate if rate > 0 else None
        return Transfer(way=way, bytes=self.done, total=self.total, bytes_per_second=rate or None, eta_seconds=left)


@asynccontextmanager
async def report_progress(
    job: Job,
    visit: Visit,
    way: str,
    *,
    look_seconds: float = _LOOK_SECONDS,
    event_seconds: float = _EVENT_SECONDS,
) -> AsyncIterator[Progress]:
    """Yield a callback for a transfer; `way` is "sending" or "fetching". The job's next write clears its progress."""
    meter, over = Meter(began=boottime()), asyncio.Event()
    reporting = asyncio.create_task(_report(meter, over, job, visit, way, look_seconds, event_seconds))
    try:
        yield lambda done, total: meter.moved(done, total, now=boottime())
    finally:
        # Not cancelled: a write in progress would finish in its thread, beside the one that follows.
        over.set()
        await asyncio.wait([reporting])
        problem = reporting.exception()
    if problem is not None:
        raise problem  # a lost lease ends the transfer too


async def _report(
    meter: Meter,
    over: asyncio.Event,
    job: Job,
    visit: Visit,
    way: str,
    look_seconds: float,
    event_seconds: float,
) -> None:
    event_at, shown = boottime(), 0
    while not await _is_over(over, look_seconds):
        if meter.done == shown:
            continue
        shown, now = meter.done, boottime()
        reading = meter.reading(way, now=now)
        events: tuple[NewEvent, ...] = ()
        if now - event_at >= event_seconds:
            event_at, events = now, (NewEvent(kind="transfer", payload=asdict(reading)),)
        moving = replace(job, machine=replace(job.machine, transfer=reading))
        await visit.record(wait(moving, 0.0, events=events))


async def _is_over(over: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await over.wait()
    except TimeoutError:
        return False
    return True
