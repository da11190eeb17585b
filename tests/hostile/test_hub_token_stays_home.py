"""A rented machine that keeps everything it is sent: no token that may write is among it, and the model arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.wiring.build import build_world
from stationmaster.control.worker.worker import Worker
from stationmaster.model import DatasetRef, Outcome, Reason, State
from stationmaster.simulator.harness import simulator_thread
from tests.support.asynchronous_tests import until
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.recorded_remote import recorded
from tests.support.servers.hub_server import HUB_TOKEN, HUB_USER, HubServer
from tests.support.vast.simulated_vast import quick_settings

READ_TOKEN = "hf_planted_reader"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path_factory.mktemp("hostile") / "simulator")) as url:
        yield url


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetRef:
    return a_tiny_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as hub:
        hub.users[READ_TOKEN] = HUB_USER
        hub.read_only_tokens.add(READ_TOKEN)
        yield hub


@pytest.fixture
def station(tmp_path: Path, url: str, forge: StormForge, hub: HubServer, hold: Hold, environ: dict[str, str]) -> Any:
    return hold(StormStation(tmp_path / "home", url, forge, STATIONMASTER_HUB__URL=hub.url, **environ))


def let_recipe_ask_for_the_token(station: StormStation) -> None:
    recipe = station.home / "recipes" / "storm" / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("    timeout: 1h", "    secrets: [HF_TOKEN]\n    timeout: 1h"))


def work_until_ended(station: StormStation, dataset: DatasetRef) -> bytes:
    """One whole job on a rented machine; everything that home sent there."""
    kept: list[bytes] = []
    station.submit(storm_job("job-1", dataset, journal=station.journal, steps=8))
    asyncio.run(_work(station, kept))
    return b"\n".join(kept)


async def _work(station: StormStation, kept: list[bytes]) -> None:
    world = build_world(station.settings, station.environ, station.store)
    world.connect = recorded(world.connect, kept)
    world.policy = replace(world.policy, provider_look_seconds=0.1, retry_seconds=(0.2,))
    worker = Worker(world)
    running = asyncio.create_task(worker.run())
    try:
        await until(lambda: station.job("job-1").state is State.ENDED, what="the job has ended")
    finally:
        worker.leave()
        await running
        await world.close()


@pytest.mark.parametrize(
    "environ", [{"STATIONMASTER_HUB__PUBLISH": "true", "HF_TOKEN": HUB_TOKEN, "HF_READ_TOKEN": READ_TOKEN}]
)
def test_the_model_reaches_the_hub_and_of_two_tokens_the_machine_gets_the_one_that_can_only_read(
    station: StormStation, hub: HubServer, dataset: DatasetRef
) -> None:
    let_recipe_ask_for_the_token(station)
    kept = work_until_ended(station, dataset)
    assert station.job("job-1").outcome is Outcome.COMPLETED
    (model,) = station.store.models.listed()
    (place,) = [place for place in model.places if place.kind == "hub"]
    owner, name, file = place.address.removeprefix("hf://").split("/", 2)
    assert len(hub.content(f"{owner}/{name}", file) or b"") == model.size
    assert hub.content(f"{owner}/{name}", "README.md")
    assert b"X-Amz-Signature" in kept, "the machine sent the model itself"
    assert READ_TOKEN.encode() in kept
    assert HUB_TOKEN.encode() not in kept


@pytest.mark.parametrize("environ", [{"HF_TOKEN": HUB_TOKEN}])
def test_a_token_that_may_write_ends_the_job_with_a_hint_before_anything_is_rented(
    station: StormStation, dataset: DatasetRef
) -> None:
    let_recipe_ask_for_the_token(station)
    kept = work_until_ended(station, dataset)
    job = station.job("job-1")
    assert (job.outcome, job.reason) == (Outcome.FAILED_PROVISIONING, Reason.ACCESS_REFUSED)
    assert "HF_TOKEN may write to the Hub" in str(job.explanation)
    assert "hint: create a token with the role read" in str(job.explanation)
    assert "HF_READ_TOKEN" in str(job.explanation)
    assert (station.truth(), kept) == ([], b"")


@pytest.mark.parametrize("environ", [{"HF_TOKEN": READ_TOKEN}])
def test_while_the_hub_cannot_be_asked_nothing_is_rented_and_then_a_token_that_can_only_read_goes_to_the_machine(
    station: StormStation, hub: HubServer, dataset: DatasetRef
) -> None:
    hub.refuse("GET /api/whoami-v2", 503, times=3)
    let_recipe_ask_for_the_token(station)
    kept = work_until_ended(station, dataset)
    assert station.job("job-1").outcome is Outcome.COMPLETED
    assert READ_TOKEN.encode() in kept
    assert len(hub.asked("GET /api/whoami-v2")) == 4, "three without an answer, then once and for all"
    assert len(station.truth()) == 1
