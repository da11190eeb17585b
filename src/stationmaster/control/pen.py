"""Writing for many jobs at once: whatever waits while one transaction runs goes into the next, whatever its number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from stationmaster.control.world import World, boottime
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.store.leases import Entry, Lease
from stationmaster.store.writes import Write


@dataclass(frozen=True, slots=True)
class _Waiting:
    entry: Entry
    done: asyncio.Future[Lease]


@dataclass(slots=True)
class Pen:
    """Collects what jobs have to write and writes it together, each under its own lease.

    With a beat it lets so much time pass from one transaction to the next: live streams have something to say all the
    time, and one transaction in a tenth of a second does for all of them.
    """

    world: World
    beat_seconds: float = 0.0
    _waiting: list[_Waiting] = field(default_factory=list)
    _writing: asyncio.Task[None] | None = None
    _written_at: float = 0.0

    async def record(self, lease: Lease, write: Write) -> Lease:
        """Write and keep the lease; the lease as it is now. Raises LeaseLost, StoreError."""
        return await self._put(Entry(lease=lease, write=write, keep=True))

    async def settle(self, lease: Lease, write: Write) -> None:
        """Write and hand the lease back. Raises LeaseLost, StoreError."""
        await self._put(Entry(lease=lease, write=write))

    async def _put(self, entry: Entry) -> Lease:
        done: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(entry, done))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_until_none_waits())
        return await done

    async def _write_until_none_waits(self) -> None:
        try:
            while self._waiting:
                # Even 0 lets those come along who are ready now; what comes after a silence need not wait.
                await asyncio.sleep(max(0.0, self._written_at + self.beat_seconds - boottime()))
                batch, self._waiting = self._waiting, []
                self._written_at = boottime()
                await self._write(batch)
        finally:
            self._writing = None

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        write = self.world.store.leases.write
        try:
            leases = await self.world.ask_store(write, [waiting.entry for waiting in batch])
        except BaseException as problem:
            if isinstance(problem, Exception) and not isinstance(problem, StoreError) and len(batch) > 1:
                for waiting in batch:  # one of them cannot be written; the others are not to suffer for it
                    await self._write([waiting])
                return
            _fail(batch, problem)
            if isinstance(problem, asyncio.CancelledError):
                raise
            return
        for waiting, lease in zip(batch, leases, strict=True):
            _answer(waiting, lease)


def _fail(batch: Sequence[_Waiting], problem: BaseException) -> None:
    for waiting in batch:
        if not waiting.done.done():  # else its job was interrupted meanwhile
            waiting.done.set_exception(problem)


def _answer(waiting: _Waiting, lease: Lease | None) -> None:
    if waiting.done.done():
        return
    if lease is None:
        job_id = waiting.entry.lease.job.id
        waiting.done.set_exception(LeaseLost(f"job {job_id} has been taken over; what was learnt is dropped"))
    else:
        waiting.done.set_result(lease)
