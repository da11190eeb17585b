"""One listing of a provider's machines, shared by all jobs that need it at the same moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from stationmaster.control.flow.batching import BatchedQuery
from stationmaster.model import Listing, Machine
from stationmaster.providers.base import Provider


@dataclass(slots=True)
class Listings:
    """Asks each provider for its list at most once at a time, however many jobs wait for it."""

    providers: Mapping[str, Provider]
    _queries: dict[str, BatchedQuery[None, Listing]] = field(default_factory=dict)

    async def of(self, provider: str) -> Listing:
        """A listing that was requested after this call: an older one could miss a machine or show one that is gone."""
        if provider not in self._queries:
            self._queries[provider] = BatchedQuery(partial(self._list, provider))
        return await self._queries[provider].of(None)

    async def _list(self, provider: str, _all: frozenset[None]) -> dict[None, Listing]:
        return {None: await self.providers[provider].listing()}


def labelled(listing: Listing, label: str) -> list[Machine]:
    """Machines with this label, newest first."""
    found = [machine for machine in listing.machines if machine.label == label]
    return sorted(found, key=lambda machine: (machine.created_at, machine.provider_id), reverse=True)


def shows_absence(listing: Listing, *, account: str | None) -> bool:
    """Whether a machine that the listing lacks is missing: the listing is complete, and of the right account."""
    if account is not None and listing.account != account:
        return False
    return listing.complete
