"""Providers for the contract suite, each with its own account and its own clean-up."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest

from stationmaster.control.wiring.ssh_provider import build_ssh_provider
from stationmaster.model import Machine, MachineStatus
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.providers.base import Provider
from stationmaster.providers.fake import FakeProvider
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.client import VastClient
from stationmaster.providers.vastai.provider import VastOptions, VastProvider
from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.machines.own_hosts import host_behind, settings_with_hosts
from tests.support.vast.vast_client_bench import OPTIONS, simulated_provider
from tests.support.vast.vast_wishes import vast_settings

LIVE = "vastai-live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A provider to be held against the contract; `ready_seconds` is how long a machine may take to run."""

    provider: Provider
    ready_seconds: float = 10.0

    async def running(self, provider_id: str) -> Machine:
        """The machine once it runs."""
        async with asyncio.timeout(self.ready_seconds):
            while True:
                machine = await self.provider.describe(provider_id)
                if machine is not None and machine.status is MachineStatus.RUNNING:
                    return machine
                assert machine is not None
                assert machine.status is MachineStatus.CREATING, machine
                await asyncio.sleep(0.02)


Maker = Callable[[Path, pytest.FixtureRequest], Iterator[Bench]]


def _fake(folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    yield Bench(provider=FakeProvider())


def _loopback(folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    provider = LoopbackProvider(
        folder / "machines", environment={"PATH": "/usr/bin:/bin"}, price_per_hour=MicroDollars(360_000)
    )
    yield Bench(provider=provider)


def _own_machines(folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Two hosts behind one real sshd: attempts of one job never share a folder."""
    sshd = request.getfixturevalue("sshd")
    hosts = [host_behind(sshd, name, folder / name, price_per_hour="0.36") for name in ("one", "two")]
    yield Bench(provider=build_ssh_provider(settings_with_hosts(folder, *hosts, trusted=(sshd,))))


def _simulated_vast(folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Every test is another customer."""
    url = request.getfixturevalue("simulator_url")
    key = uuid.uuid4().hex
    httpx.post(
        f"{url}/simulator/accounts", json={"name": "customer", "api_key": key, "credit": 50}, verify=False
    ).raise_for_status()
    provider = simulated_provider(url, key=key, options=replace(OPTIONS, settings=vast_settings()))
    yield Bench(provider=provider)
    asyncio.run(_destroy_all(provider))


def _live_vast(folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The real service: costs cents. Machines of the account that are not the suite's own are never touched."""
    key = os.environ.get("VASTAI_API_KEY")
    if not key:
        pytest.fail("set VASTAI_API_KEY to hold the contract against Vast.ai", pytrace=False)
    pair = ensure_pair(folder / "id_ed25519")
    store = Store(Database(f"sqlite:///{folder}/store.db"))
    calls = Calls(
        base_url=os.environ.get("VASTAI_API_BASE_URL", "https://console.vast.ai/api/v0"),
        api_key=key,
        account="default",
        limiter=store.limiter,
    )
    options = VastOptions(
        public_key=lambda: pair.public_key,
        ssh_key_path=str(pair.private_path),
        settings=vast_settings(max_bid_per_hour=from_dollars("0.50"), default_disk_gb=10.0),
        default_image="python:3.11-slim",
        search_pages=1,
    )
    provider = VastProvider(VastClient(calls), options=options)
    yield Bench(provider=provider, ready_seconds=900.0)
    asyncio.run(_destroy_all(provider))
    store.close()


async def _destroy_all(provider: Provider) -> None:
    for machine in ours((await provider.listing()).machines):
        await provider.destroy(machine.provider_id)


CONTRACT_PREFIX = "sm-ab12cd34-contract-"


def ours(machines: tuple[Machine, ...]) -> list[Machine]:
    """The suite's own machines: a live account may have others."""
    return [machine for machine in machines if machine.label.startswith(CONTRACT_PREFIX)]


MAKERS: dict[str, Maker] = {
    "fake": _fake,
    "loopback": _loopback,
    "ssh": _own_machines,
    "vastai": _simulated_vast,
    LIVE: _live_vast,
}


@contextmanager
def bench(name: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = MAKERS[name](folder, request)
    yield next(made)
    for _ in made:
        raise AssertionError("a maker yields once")
