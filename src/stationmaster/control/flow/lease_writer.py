"""Writes of many jobs share a transaction, each under its own lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from stationmaster.control.flow.batching import Batcher
from stationmaster.errors import LeaseLost, StoreError
from stationmaster.store.leases import Lease, LeasedWrite
from stationmaster.store.writes import Write


@dataclass(slots=True)
class LeaseWriter:
    """`write_entries` writes in one transaction and returns each entry's lease, or None where it was lost.

    `interval_seconds` is the least time from one transaction to the next.
    """

    write_entries: Callable[[Sequence[LeasedWrite]], Awaitable[Sequence[Lease | None]]]
    interval_seconds: float = 0.0
    _batcher: Batcher[LeasedWrite, Lease] = field(init=False)

    def __post_init__(self) -> None:
        self._batcher = Batcher(self._write, interval_seconds=self.interval_seconds)

    async def record(self, lease: Lease, write: Write) -> Lease:
        """Write and keep the lease; returns it as it is now. Raises LeaseLost, StoreError."""
        return await self._batcher.run(LeasedWrite(lease=lease, write=write, keep=True))

    async def settle(self, lease: Lease, write: Write) -> None:
        """Write and hand the lease back. Raises LeaseLost, StoreError."""
        await self._batcher.run(LeasedWrite(lease=lease, write=write))

    async def _write(self, entries: Sequence[LeasedWrite]) -> list[Lease | BaseException]:
        try:
            leases = await self.write_entries(entries)
        except StoreError:
            raise
        except Exception:
            if len(entries) == 1:
                raise
            return [await self._write_alone(entry) for entry in entries]
        return [lease or _taken_over(entry) for entry, lease in zip(entries, leases, strict=True)]

    async def _write_alone(self, entry: LeasedWrite) -> Lease | BaseException:
        """One entry that cannot be written must not stop the others of its batch."""
        try:
            return (await self._write([entry]))[0]
        except Exception as problem:  # noqa: BLE001 (raised where the entry was written)
            return problem


def _taken_over(entry: LeasedWrite) -> LeaseLost:
    return LeaseLost(f"another worker has taken over job {entry.lease.job.id}; this write is dropped")
