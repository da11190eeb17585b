"""Writing for many jobs at once: what they have to write goes into one transaction, each under its own lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stationmaster.control.flow.batching import Batches
from stationmaster.control.flow.world import World
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.store.leases import Lease, LeasedWrite
from stationmaster.store.writes import Write


@dataclass(slots=True)
class Pen:
    """With a beat it lets so much time pass from one transaction to the next."""

    world: World
    beat_seconds: float = 0.0
    _entries: Batches[LeasedWrite, Lease] = field(init=False)

    def __post_init__(self) -> None:
        self._entries = Batches(self._write, beat_seconds=self.beat_seconds)

    async def record(self, lease: Lease, write: Write) -> Lease:
        """Write and keep the lease; the lease as it is now. Raises LeaseLost, StoreError."""
        return await self._entries.put(LeasedWrite(lease=lease, write=write, keep=True))

    async def settle(self, lease: Lease, write: Write) -> None:
        """Write and hand the lease back. Raises LeaseLost, StoreError."""
        await self._entries.put(LeasedWrite(lease=lease, write=write))

    async def _write(self, entries: Sequence[LeasedWrite]) -> list[Lease | BaseException]:
        try:
            leases = await self.world.ask_store(self.world.store.leases.write, entries)
        except StoreError:
            raise
        except Exception:
            if len(entries) == 1:
                raise
            return [await self._alone(entry) for entry in entries]
        return [lease or _taken_over(entry) for entry, lease in zip(entries, leases, strict=True)]

    async def _alone(self, entry: LeasedWrite) -> Lease | BaseException:
        """One of several cannot be written; the others are not to suffer for it."""
        try:
            return (await self._write([entry]))[0]
        except Exception as problem:  # noqa: BLE001 (handed to whoever wrote it)
            return problem


def _taken_over(entry: LeasedWrite) -> LeaseLost:
    return LeaseLost(f"job {entry.lease.job.id} has been taken over; what was learnt is dropped")
