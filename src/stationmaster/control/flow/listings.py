"""One listing of a provider's machines, shared by all jobs that want to look at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from stationmaster.model import Listing, Machine
from stationmaster.providers.base import Provider


@dataclass(slots=True)
class _Queue:
    running: asyncio.Task[Listing] | None = None
    following: asyncio.Task[Listing] | None = None


@dataclass(slots=True)
class Fleet:
    """Asks a provider for its list at most once at a time, however many jobs wait for it."""

    providers: Mapping[str, Provider]
    _queues: dict[str, _Queue] = field(default_factory=dict)

    async def listing(self, provider: str) -> Listing:
        """A listing that was begun after this call: an older one could show what is no longer, or not yet, true."""
        queue = self._queues.setdefault(provider, _Queue())
        if queue.following is None:
            queue.following = asyncio.create_task(self._after(queue, provider))
        return await asyncio.shield(queue.following)

    async def _after(self, queue: _Queue, provider: str) -> Listing:
        if queue.running is not None:
            await asyncio.wait([queue.running])
        queue.running, queue.following = queue.following, None
        return await self.providers[provider].listing()


def labelled(listing: Listing, label: str) -> list[Machine]:
    """Machines with this label, newest first."""
    found = [machine for machine in listing.machines if machine.label == label]
    return sorted(found, key=lambda machine: (machine.created_at, machine.provider_id), reverse=True)


def shows_absence(listing: Listing, *, account: str | None) -> bool:
    """Whether what the listing lacks may be taken as missing: it is complete, and of the right account."""
    if account is not None and listing.account != account:
        return False
    return listing.complete
