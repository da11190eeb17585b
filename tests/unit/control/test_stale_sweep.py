"""A sweep that was stopped between its reads acts on nothing that has changed meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from stationmaster.control.flow.world import World
from stationmaster.control.periodic.sweep import Sweeper
from stationmaster.model import Listing, Offer, RentalState, Requirements
from stationmaster.providers.fake import FakeProvider
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import requested
from tests.support.policies import changed


@dataclass
class BusyProvider(FakeProvider):
    """Something happens just before its second listing, which a sweep asks for after it has read the rentals."""

    meanwhile: Callable[[], Awaitable[object]] | None = None
    listed: list[int] = field(default_factory=list)

    async def listing(self) -> Listing:
        self.listed.append(len(self.machines))
        if len(self.listed) == 2 and self.meanwhile is not None:
            await self.meanwhile()
        return await super().listing()


@asynchronous
async def test_a_machine_under_the_label_of_a_rental_that_ended_meanwhile_is_written_down_before_it_is_destroyed(
    tmp_path: Path,
) -> None:
    """Another worker has seen the rental's end, and a worker that was stopped before its create has woken up."""
    provider = BusyProvider()
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as store:
        label = f"sm-{store.installation_id}-job-1"
        read = requested(label=label, create_sent_at=store.now() - 60)
        store.rentals.put_without_lease(read)
        ended = replace(read, provider_id="m0", state=RentalState.GONE, gone_at=store.now())

        async def end_it_and_rent_another() -> None:
            assert store.rentals.put_without_lease(ended)
            offer = Offer(id="fake-offer", provider="fake", price_per_hour=provider.price_per_hour)
            await provider.create(offer, label=label, want=Requirements())

        provider.meanwhile = end_it_and_rent_another
        world = world_of(store, provider, tmp_path)
        try:
            await Sweeper(world).sweep()
            assert list(provider.machines) == ["m1"], "destroyed without a row: nobody would ever see what it cost"
            for _ in ("raises an alert", "destroys it", "misses it", "has seen its end"):
                await Sweeper(world).sweep()
        finally:
            await world.close()
        assert provider.machines == {}
        assert [(row.provider_id, row.state) for row in store.rentals.of_job("job")] == [
            ("m0", RentalState.GONE),
            ("m1", RentalState.GONE),
        ]
        assert [line.rental_label for line in store.costs.of_job("job")] == [f"{label}#m1"]


def world_of(store: Store, provider: FakeProvider, folder: Path) -> World:
    return World(
        store=store,
        providers={provider.name: provider},
        connect=_no_machine,
        find_recipe=_no_machine,
        secrets=lambda _name: None,
        home=folder,
        trackside=folder / "trackside.pyz",
        policy=changed(sweep={"grace": 0.0}),
    )


def _no_machine(_where: object) -> NoReturn:
    raise AssertionError("a sweep asks only the provider")
