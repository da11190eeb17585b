"""A provider's credit that runs out is told once, and forgotten when there is enough again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stationmaster.control.flow.world import World
from stationmaster.control.periodic.alerts import alert_low_credit
from stationmaster.errors import ProviderBusy
from stationmaster.model import Charge
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.providers.fake import FakeProvider
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous

FLOOR = from_dollars(5)


class Paid(FakeProvider):
    """A fake provider with an account."""

    left: MicroDollars | None = from_dollars(20)
    billed_after_seconds = 0.0

    async def credit(self) -> MicroDollars:
        if self.left is None:
            raise ProviderBusy
        return self.left

    async def charges(self, *, since: float, until: float) -> list[Charge]:
        return []


def nothing(*_: Any) -> Any:
    raise AssertionError("nothing is trained here")


@asynchronous
async def test_low_credit_is_an_alert_until_it_is_enough_again(tmp_path: Path) -> None:
    provider, store = Paid(), Store(Database(f"sqlite:///{tmp_path}/store.db"))
    world = World(
        store=store,
        providers={"fake": provider},
        connect=nothing,
        find_recipe=nothing,
        secrets=nothing,
        home=tmp_path,
        trackside=tmp_path / "trackside.pyz",
    )
    try:
        await alert_low_credit(world, FLOOR)
        assert store.alerts.open() == []
        provider.left = from_dollars("4.99")
        for _ in range(2):
            await alert_low_credit(world, FLOOR)
        provider.left = None  # unknown is not enough
        await alert_low_credit(world, FLOOR)
        (alert,) = store.alerts.open()
        assert alert.kind == "low_credit"
        assert "$4.99" in alert.message
        provider.left = from_dollars(50)
        await alert_low_credit(world, FLOOR)
        assert store.alerts.open() == []
    finally:
        await world.close()
        store.close()
