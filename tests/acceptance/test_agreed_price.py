"""What was agreed to is what is bought: the market is asked once before the yes, and a dearer one is waited out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Job, Outcome, Reason
from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.proposals import TrainRequest
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings

_HOSTS = 12
_OTHER_KEY = "somebody-else-key-0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    world: LocalWorld
    other: Customer  # who rents what we were about to rent
    pictures: Path

    def request(self, **fields: Any) -> TrainRequest:
        python = {"python": sys.executable}  # the machine's own may lack what the recipe imports
        return self.world.request(self.pictures, id="mine", provider="vastai", parameters=python, **fields)

    def submitted(self, **fields: Any) -> Job:
        return submit(self.world.station, self.request(**fields)).job

    def take_all_but_the_dearest(self, job: Job) -> list[int]:
        """Somebody else rents every machine that costs about what was agreed to; their instances."""
        most = 1.5 * job.spec.quote.price_per_hour / 1e6
        cheap = [one for one in self.other.offers() if one["dph_total"] <= most]
        return [self.other.rent(one["id"]) for one in cheap]

    def told(self, kind: str) -> list[dict[str, object]]:
        return [dict(one.payload) for one in self.world.station.events.of_job("mine") if one.kind == kind]


def bench_of(tmp_path: Path, open_things: ExitStack, *, backend: str = "paper", **settings: str) -> Bench:
    """At a small market, whose machines are real only where a job gets one."""
    pair = ensure_pair(tmp_path / "keys" / "id_ed25519")
    market = quick_settings(tmp_path / "simulator", backend=backend, hosts=_HOSTS)
    url = open_things.enter_context(simulator_thread(market))
    other = Customer(url, _OTHER_KEY)
    open_things.callback(other.close)
    other.http.post("/simulator/accounts", json={"name": "other", "api_key": _OTHER_KEY, "credit": 500})
    environ = {
        "VASTAI_API_KEY": API_KEY,
        "VASTAI_API_BASE_URL": f"{url}/api/v0",
        "VASTAI_SSH_KEY_PATH": str(pair.private_path),
        "STATIONMASTER_VASTAI__CALL_SPACING": "0",
        **settings,
    }
    world = open_things.enter_context(LocalWorld(tmp_path, **environ))
    return Bench(world=world, other=other, pictures=write_pictures(tmp_path / "pictures"))


@pytest.fixture
def open_things() -> Iterator[ExitStack]:
    with ExitStack() as things:
        yield things


def test_a_job_waits_while_the_market_is_dearer_and_trains_once_it_is_not(
    tmp_path: Path, open_things: ExitStack
) -> None:
    bench = bench_of(tmp_path, open_things, backend="process")
    job = bench.submitted()
    taken = bench.take_all_but_the_dearest(job)
    bench.world.work_until(lambda: bool(bench.told("waiting_for_offer")), what="the job says that it waits")
    told = bench.told("waiting_for_offer")[0]
    assert "at most" in str(told["agreed"])
    assert "per hour that you agreed to (from $" in str(told["reasons"])
    assert "stationmaster retry mine" in str(told["remedies"])
    assert bench.world.station.jobs.view("mine").job.outcome is None
    for instance in taken:
        bench.other.destroy(instance)
    bench.world.work_until_ended("mine")
    view = bench.world.station.jobs.view("mine")
    assert view.job.outcome is Outcome.COMPLETED
    (rental,) = view.rentals
    assert rental.offer is not None
    assert rental.offer.price_per_hour <= 1.2 * job.spec.quote.price_per_hour


def test_a_job_that_waited_in_vain_ends_with_that_reason_and_rents_nothing(
    tmp_path: Path, open_things: ExitStack
) -> None:
    bench = bench_of(tmp_path, open_things, STATIONMASTER_LIMITS__READY="1s")
    bench.take_all_but_the_dearest(bench.submitted())
    bench.world.work_until_ended("mine")
    view = bench.world.station.jobs.view("mine")
    assert (view.job.outcome, view.job.reason) == (Outcome.FAILED_PROVISIONING, Reason.NO_OFFER)
    assert "no offer within the agreed limits" in str(view.job.explanation)
    assert "per hour that you agreed to (from $" in str(view.job.explanation)
    assert (view.cost, [rental.provider_id for rental in view.rentals if rental.provider_id]) == (0, [])


def test_a_job_above_its_own_price_cap_says_how_many_offers_that_excludes_and_which_cap_would_do(
    tmp_path: Path, open_things: ExitStack
) -> None:
    bench = bench_of(tmp_path, open_things)
    usual = bench.world.station.proposals.check(bench.request()).quote.price_per_hour
    job = bench.submitted(max_price=usual)
    bench.take_all_but_the_dearest(job)
    bench.world.work_until(lambda: bool(bench.told("waiting_for_offer")), what="the job says that it waits")
    (told,) = bench.told("waiting_for_offer")
    assert "× above the cap of $" in str(told["reasons"])
    assert "submit with --max-price " in str(told["remedies"])
