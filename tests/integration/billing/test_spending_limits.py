"""Whether a job can be paid for is said before it is submitted; what a training cost is charged after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

from stationmaster.control.flow.world import World
from stationmaster.control.periodic.alerts import SPENDING, alert_spending
from stationmaster.errors import OutOfCredit, UserError
from stationmaster.model import CostLine, Outcome
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.policies import changed

PRICE = "36"  # an hour on this computer, so that a minute is worth counting
PAID = {"STATIONMASTER_LOOPBACK__PRICE_PER_HOUR": PRICE, "STATIONMASTER_BILLING__ENABLED": "1"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures") / "cats")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as opened:
        yield opened


def test_a_paid_training_is_refused_without_credits_and_charged_what_it_cost_with_them(
    pictures: Path, tmp_path: Path
) -> None:
    with LocalWorld(tmp_path, **PAID) as world:
        request = world.request(pictures, id="paid")
        with pytest.raises(OutOfCredit, match=r"me has only \$0.00 of credits"):
            submit(world.station, request)
        ledger = world.ledger
        ledger.grant("me", from_dollars(50), note="to begin with")
        submit(world.station, request)
        world.work_until_ended("paid")
        view = world.station.jobs.view("paid")
        assert view.job.outcome is Outcome.COMPLETED, view.job.explanation
        assert view.cost > 0
        account = ledger.account("me")
        assert (account.balance, account.held) == (from_dollars(50) - view.cost, 0)
        (line,) = world.station.costs.lines("paid")
        assert line.shares.total == view.cost
        assert line.shares.stalled == 0
        assert ledger.prove().problems == ()


def test_a_job_that_no_day_has_room_for_is_refused_and_one_that_must_wait_says_so(
    pictures: Path, tmp_path: Path
) -> None:
    with (
        LocalWorld(
            tmp_path, STATIONMASTER_LOOPBACK__PRICE_PER_HOUR=PRICE, STATIONMASTER_LIMITS__DAILY_SPEND="0.01"
        ) as world,
        pytest.raises(UserError, match="above the daily limit of"),
    ):
        world.station.proposals.check(world.request(pictures))
    with LocalWorld(
        tmp_path, STATIONMASTER_LOOPBACK__PRICE_PER_HOUR=PRICE, STATIONMASTER_LIMITS__DAILY_SPEND="100"
    ) as world:
        assert not any(
            "waits in the queue" in note for note in world.station.proposals.check(world.request(pictures)).notes
        )


@asynchronous
async def test_operators_hear_of_machines_that_cost_too_much_together_until_they_no_longer_do(
    store: Store, tmp_path: Path
) -> None:
    world = World(
        store=store,
        providers={},
        connect=_nothing,
        find_recipe=_nothing,
        secrets=_nothing,
        home=tmp_path,
        trackside=tmp_path,
        policy=changed(limits={"hourly_alert": from_dollars(10)}),
    )
    try:
        for number in range(3):
            store.costs.put_without_lease(_line(number, ended_at=None))
        await alert_spending(world)
        await alert_spending(world)
        (alert,) = store.alerts.open()
        assert (alert.kind, alert.message) == (
            SPENDING, "all machines together cost $12.00 per hour, more than $10.00",
        )  # fmt: skip
        store.costs.put_without_lease(_line(0, ended_at=20.0))
        await alert_spending(world)
        assert store.alerts.open() == []
    finally:
        await world.close()


def _line(number: int, *, ended_at: float | None) -> CostLine:
    return CostLine(
        rental_label=f"sm-{number}", job_id="job", kind="gpu", rate_per_hour=from_dollars(4), started_at=10.0,
        ended_at=ended_at, amount=MicroDollars(0), source="estimate",
    )  # fmt: skip


def _nothing(*_: object) -> NoReturn:
    raise AssertionError("nothing is trained here")
