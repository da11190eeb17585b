"""A machine that is somebody's own as a provider: a job gets a folder beside the training that runs there.

Nothing is rented, relabelled or destroyed: `create` makes the job's folder, `destroy` ends what watches the training
and removes the folder. The training itself carries no label of ours and is not touched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from stationmaster.errors import NoCapacity
from stationmaster.model import Listing, Machine, Offer, Requirements, SshAccess
from stationmaster.providers.own_machine_script import DEFAULT_ROOTS
from stationmaster.providers.own_machines import RunOnHost, SshProvider
from stationmaster.settings import OwnHostSettings

_ROOTS = ("$STATIONMASTER_JOB_ROOT", *DEFAULT_ROOTS)
_MOST_JOBS = 1000  # a job that only watches takes no room


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the machine is now, and what it costs its owner."""

    host: OwnHostSettings
    access: SshAccess


FindPlace = Callable[[], Awaitable[Place | None]]
"""Looks for the machine; None only if its own provider says that it no longer exists. Raises ProviderError."""


class AdoptedHost:
    """One machine. Its address is looked up for every call, because that of a rented one may change."""

    def __init__(self, name: str, *, find: FindPlace, run: RunOnHost) -> None:
        self.name = name
        self._find = find
        self._run = run

    @property
    def create_limit_seconds(self) -> float:
        return self._slots(None).create_limit_seconds

    async def find_place(self) -> Place | None:
        """Where the machine is now; None if it no longer exists. Raises ProviderError."""
        return await self._find()

    async def offers(self, want: Requirements) -> list[Offer]:
        """The machine itself, whatever else is wanted: the training is there already."""
        place = await self._find()
        most = want.max_price_per_hour
        if place is None or (most is not None and place.host.price_per_hour > most):
            return []
        host = place.host
        return [
            Offer(
                id=host.name,
                provider=self.name,
                price_per_hour=host.price_per_hour,
                gpu=host.gpu,
                gpus=host.gpus,
                vram_gib=host.vram_gib,
            )
        ]

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        place = await self._find()
        if place is None:
            raise NoCapacity(f"{self.name} no longer exists")
        return await self._slots(place).create(offer, label=label, want=want)

    async def listing(self) -> Listing:
        place = await self._find()
        if place is None:
            return Listing(machines=(), complete=True, account=self.name)
        return await self._slots(place).listing()

    async def describe(self, provider_id: str) -> Machine | None:
        place = await self._find()
        return None if place is None else await self._slots(place).describe(provider_id)

    async def destroy(self, provider_id: str) -> None:
        place = await self._find()
        if place is not None:
            await self._slots(place).destroy(provider_id)

    def _slots(self, place: Place | None) -> SshProvider:
        hosts = [] if place is None else [place.host.model_copy(update={"slots": _MOST_JOBS})]
        return SshProvider(
            hosts,
            name=self.name,
            run=self._run,
            pinned_keys=lambda _host: (),
            access=None if place is None else lambda _host: place.access,
            roots=_ROOTS,
        )
