"""Writing for many live streams at once: one transaction per beat for all of them, whatever their number."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from stationmaster.control.world import World
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.store.leases import Lease
from stationmaster.store.writes import Write

BEAT_SECONDS = 0.1


@dataclass(slots=True)
class StreamWriter:
    """Collects what streams have to write and records it together, each under its own lease."""

    world: World
    beat_seconds: float = BEAT_SECONDS
    _waiting: list[tuple[Lease, Write, asyncio.Future[None]]] = field(default_factory=list)
    _beat: asyncio.Task[None] | None = None

    async def record(self, lease: Lease, write: Write) -> None:
        """The write is recorded, and the lease kept. Raises LeaseLost, or StoreError when the store is away."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((lease, write, done))
        if self._beat is None:
            self._beat = asyncio.create_task(self._write_at_the_beat())
        await done

    async def _write_at_the_beat(self) -> None:
        await asyncio.sleep(self.beat_seconds)
        batch, self._waiting, self._beat = self._waiting, [], None
        pairs = [(lease, write) for lease, write, _ in batch]
        try:
            lost = await self.world.ask_store(self.world.store.leases.record_many, pairs)
        except StoreError as problem:
            for _, _, done in batch:
                if not done.done():
                    done.set_exception(problem)
            return
        for lease, _, done in batch:
            if done.done():  # its stream was cancelled meanwhile
                continue
            if lease.job.id in lost:
                done.set_exception(LeaseLost(f"job {lease.job.id} has been taken over"))
            else:
                done.set_result(None)
