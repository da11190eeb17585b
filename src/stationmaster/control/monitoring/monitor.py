"""Watches any rented machines, ours or not: lists them and reads their logs side by side, each at its own pace."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass

from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.notices import Told, new_notices
from stationmaster.control.monitoring.sources import Listing, Logs, Sighting
from stationmaster.control.monitoring.timing import REAL_TIME, Timing
from stationmaster.errors import AccessRefused, ProviderError, StationmasterError

_log = logging.getLogger("stationmaster.monitor")
LIST_SECONDS = 10.0
"""The least time between two list calls to a provider: at most 360 an hour."""
_API_SECONDS = 10.0
_READS_AT_ONCE = 24
_DOUBTFUL_READS_AT_ONCE = 8  # of machines that did not answer last time: they must not keep the others waiting
_SOON_SECONDS = 0.1
_LATE_SECONDS = 1.0
_LONGEST_BACK_OFF_SECONDS = 60.0
_LEAST_REFRESH_SECONDS = 1.0
_MOST_WARNINGS = 200


class Warnings:
    """Lines for a person since the last look; bounded, should nobody take them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        self._lines.append(line)
        del self._lines[:-_MOST_WARNINGS]

    def take(self) -> tuple[str, ...]:
        lines, self._lines = tuple(self._lines), []
        return lines


@dataclass(slots=True, kw_only=True)
class _Reading:
    """One machine's log: whether it is being read, and when to try again after failures."""

    task: asyncio.Task[None] | None = None
    was_tried: bool = False
    failures: int = 0
    not_before: float = -math.inf


class Monitor:
    """Runs in one event loop. Every change of the fleet becomes a look; changes that come close together share one."""

    def __init__(
        self,
        *,
        listing: Listing,
        logs: Logs | None,
        fleet: Fleet,
        warnings: Warnings,
        publish: Callable[[MonitorLook], None],
        every_seconds: float,
        list_every_seconds: float = LIST_SECONDS,
        api_seconds: float = _API_SECONDS,
        timing: Timing = REAL_TIME,
    ) -> None:
        """`logs` None: there is no way to read any."""
        self._listing = listing
        self._logs = logs
        self._fleet = fleet
        self._warnings = warnings
        self._publish = publish
        self._every_seconds = every_seconds
        self._list_every_seconds = list_every_seconds
        self._api_seconds = api_seconds
        self._timing = timing
        self._told = Told()
        self._reading: dict[str, _Reading] = {}
        self._room = asyncio.Semaphore(_READS_AT_ONCE)
        self._doubtful_room = asyncio.Semaphore(_DOUBTFUL_READS_AT_ONCE)
        self._is_listing = False
        self._reads = 0  # under way
        self._was_listed = False
        self._began = 0.0
        self._closing: asyncio.Task[None] | None = None
        self._list_now, self._read_now = asyncio.Event(), asyncio.Event()
        self._is_dirty, self._is_settled, self._is_unpaused = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._is_unpaused.set()

    async def run(self) -> None:
        """Look until cancelled. Raises AccessRefused for a key that never worked, UserError for a listing that ended
        without a list; nothing else ends it."""
        self._began = self._timing.monotonic()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._keep_listing())
                tasks.create_task(self._keep_reading(tasks))
                tasks.create_task(self._keep_publishing())
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None

    @property
    def is_asking(self) -> bool:
        """Whether an answer of the provider or of a machine is awaited."""
        return self._is_listing or self._reads > 0

    def refresh(self) -> None:
        for reading in self._reading.values():
            reading.not_before = -math.inf
        self._list_now.set()
        self._read_now.set()

    def set_paused(self, paused: bool) -> None:
        if paused:
            self._is_unpaused.clear()
            self._closing = asyncio.create_task(self._close_logs())
        else:
            self._is_unpaused.set()
            self.refresh()

    def clear_logs(self) -> None:
        self._fleet.clear_logs()
        if self._was_listed:
            self._is_dirty.set()

    async def _keep_listing(self) -> None:
        while True:
            await self._is_unpaused.wait()
            self._list_now.clear()
            began = self._timing.monotonic()
            await self._list()
            await self._rest(began + min(_LEAST_REFRESH_SECONDS, self._list_every_seconds))
            await self._rest(self._tick(began, self._list_every_seconds), self._list_now)

    async def _list(self) -> None:
        self._is_listing = changed = True
        try:
            async with asyncio.timeout(self._api_seconds):
                seen = await self._listing.machines()
        except TimeoutError:
            self._fleet.keep_old(f"the provider did not answer within {self._api_seconds:g} s")
        except ProviderError as problem:
            if isinstance(problem, AccessRefused) and self._fleet.is_empty:
                raise
            self._fleet.keep_old(str(problem))
        else:
            changed = self._fleet.take_listing(seen, now=self._timing.clock())
        finally:
            self._is_listing = False
        self._was_listed = True
        await self._forget_gone()
        if any(machine.id not in self._reading for machine in self._readable()):
            self._read_now.set()
        self._settle(changed=changed)

    async def _forget_gone(self) -> None:
        for name in set(self._reading) - self._fleet.ids():
            reading = self._reading.pop(name)
            if reading.task is not None:
                reading.task.cancel()
            if self._logs is not None:
                await self._logs.forget(name)

    async def _close_logs(self) -> None:
        """Machines send what is new on their own; while paused they must not."""
        if self._logs is not None:
            idle = [name for name, reading in self._reading.items() if reading.task is None]
            await asyncio.gather(*(self._logs.forget(name) for name in idle))

    async def _keep_reading(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            await self._is_unpaused.wait()
            self._read_now.clear()
            began = self._timing.monotonic()
            for machine in self._readable():
                reading = self._reading.setdefault(machine.id, _Reading())
                if reading.task is None and reading.not_before <= began:
                    reading.task = tasks.create_task(self._read(machine, reading))
                    self._reads += 1
            await self._rest(self._tick(began, self._every_seconds), self._read_now)

    def _readable(self) -> list[Sighting]:
        return [] if self._logs is None else self._fleet.readable()

    async def _read(self, machine: Sighting, reading: _Reading) -> None:
        assert self._logs is not None, "nothing is readable without them"
        changed = False
        try:
            async with self._doubtful_room if reading.failures else self._room:
                piece = await self._logs.read(machine, self._fleet.position(machine.id))
            changed = self._fleet.take_log(machine.id, piece)
        except StationmasterError as problem:
            changed = self._failed(machine, reading, str(problem))
        except Exception as problem:  # noqa: BLE001  # one machine's text must not end the others' looks
            _log.exception("the log of instance %s cannot be read", machine.id)
            changed = self._failed(machine, reading, f"internal error: {problem!r}")
        else:
            reading.failures = 0
        finally:
            self._reads -= 1
            was_tried, reading.task, reading.was_tried = reading.was_tried, None, True
        self._settle(changed=changed or not was_tried)

    def _failed(self, machine: Sighting, reading: _Reading, problem: str) -> bool:
        reading.failures += 1
        reading.not_before = self._timing.monotonic() + _back_off_seconds(reading.failures)
        return self._fleet.take_log_problem(machine.id, problem)

    def _settle(self, *, changed: bool) -> None:
        if not self.is_asking:
            self._is_settled.set()
        if changed:
            self._is_dirty.set()

    async def _keep_publishing(self) -> None:
        """The first look follows the first listing at once; later ones wait a little for what else is coming."""
        last = -math.inf
        while True:
            await self._is_dirty.wait()
            if last > -math.inf:
                await self._timing.sleep(_SOON_SECONDS)
                self._is_settled.clear()
                if self.is_asking:
                    await self._rest(last + min(self._every_seconds, _LATE_SECONDS), self._is_settled)
            await self._is_unpaused.wait()
            self._is_dirty.clear()
            self._publish(self._look())
            last = self._timing.monotonic()

    def _look(self) -> MonitorLook:
        snapshot = self._fleet.snapshot(now=self._timing.clock())
        unread = self._unread()
        self._told, notices = new_notices(self._told, snapshot, unfinished=unread)
        return MonitorLook(
            snapshot=snapshot,
            warnings=self._warnings.take(),
            notices=notices,
            complete=not self.is_asking and not unread,
            last=self._fleet.is_last,
        )

    def _unread(self) -> set[str]:
        """The machines whose log nobody has tried to read yet."""
        readings = ((machine.id, self._reading.get(machine.id)) for machine in self._readable())
        return {name for name, reading in readings if reading is None or not reading.was_tried}

    def _tick(self, after: float, every_seconds: float) -> float:
        """The next time of a round. Listing and reading begin together, so that they share a look.

        A sleep may end a little too early: the round that it began is the one of that time.
        """
        return self._began + (math.floor((after - self._began) / every_seconds + 0.05) + 1) * every_seconds

    async def _rest(self, until: float, wake: asyncio.Event | None = None) -> None:
        """Sleep until a time of the monotonic clock, or until woken."""
        seconds = max(0.0, until - self._timing.monotonic())
        if wake is None:
            return await self._timing.sleep(seconds)
        sleeping = asyncio.ensure_future(self._timing.sleep(seconds))
        waking = asyncio.ensure_future(wake.wait())
        try:
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()
        return None


def _back_off_seconds(failures: int) -> float:
    """
    >>> [_back_off_seconds(failures) for failures in (1, 2, 3, 10, 10_000)]
    [2.0, 4.0, 8.0, 60.0, 60.0]
    """
    return min(_LONGEST_BACK_OFF_SECONDS, 2.0 ** min(failures, 10))
