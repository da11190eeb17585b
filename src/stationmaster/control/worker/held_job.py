"""A job that this worker holds the lease of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.lease_writer import LeaseWriter
from stationmaster.errors import LeaseLost
from stationmaster.store.leases import Lease
from stationmaster.store.writes import Write


@dataclass(slots=True, eq=False)
class HeldJob:
    """`safe_until` is by a clock that runs while the computer is suspended; `free_slot` is called when it streams."""

    lease: Lease
    safe_until: float
    writer: LeaseWriter
    stream_writer: LeaseWriter
    free_slot: Callable[[], None]
    task: asyncio.Task[None] | None = None
    is_streaming: bool = False  # it mostly waits, and so takes no slot

    def check(self) -> None:
        """Raises LeaseLost if the lease may have expired."""
        if boottime() >= self.safe_until:
            raise LeaseLost(f"the lease on job {self.lease.job.id} may have expired")

    async def record(self, write: Write) -> Lease:
        """Write and keep the lease; returns it as it is now. Raises LeaseLost, StoreError."""
        return await self.writer.record(self.lease, write)

    async def settle(self, write: Write) -> None:
        """Write and hand the lease back. Raises LeaseLost, StoreError."""
        await self.writer.settle(self.lease, write)

    async def record_midway(self, write: Write) -> None:
        """Write in the middle of an action: from now on the job is a stream, and its slot is free for others."""
        if not self.is_streaming:
            self.is_streaming = True
            self.free_slot()
        await self.stream_writer.record(self.lease, write)
