from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Offer, Requirements
from stationmaster.providers.vastai.provider import VastProvider
from stationmaster.providers.vastai.ssh_keys import KeyPair, ensure_pair
from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.simulated_vast import Customer, quick_settings
from tests.support.vast.vast_client_bench import OPTIONS, simulated_provider
from tests.support.vast.vast_wishes import vast_settings

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=10.0, hours=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A customer of the simulator: our provider, plain HTTP beside it, and the truth."""

    provider: VastProvider
    customer: Customer
    url: str

    async def rent(self, label: str = "sm-ab12cd34-job-1", want: Requirements = WANT) -> str:
        return await self.provider.create(await self.offer(want), label=label, want=want)

    async def offer(self, want: Requirements = WANT) -> Offer:
        return (await self.provider.offers(want))[0]

    def truth(self, provider_id: str) -> dict[str, Any]:
        return self.customer.truth(int(provider_id))


@pytest.fixture(scope="module")
def paper_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A simulator whose machines are on paper: for everything but logins."""
    home = tmp_path_factory.mktemp("simulator")
    with simulator_thread(quick_settings(home, backend="paper", market_period_seconds=0.0, hosts=400)) as url:
        yield url


@pytest.fixture
def account(paper_url: str) -> Iterator[Account]:
    yield from _account(paper_url)


@pytest.fixture(scope="module")
def real_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A simulator whose machines can be logged in to."""
    home = tmp_path_factory.mktemp("machines")
    with simulator_thread(quick_settings(home, market_period_seconds=0.0)) as url:
        yield url


@pytest.fixture
def pair(tmp_path: Path) -> KeyPair:
    return ensure_pair(tmp_path / "keys/id_ed25519")


@pytest.fixture
def real_account(real_url: str, pair: KeyPair) -> Iterator[Account]:
    yield from _account(real_url, public_key=lambda: pair.public_key, ssh_key_path=str(pair.private_path))


def _account(url: str, **options: Any) -> Iterator[Account]:
    key = uuid.uuid4().hex
    customer = Customer(url, key)
    customer.http.post("/simulator/accounts", json={"name": "customer", "api_key": key, "credit": 50})
    made = replace(OPTIONS, settings=vast_settings(preferred_gpus=("4090",)), **options)
    try:
        yield Account(provider=simulated_provider(url, key=key, options=made), customer=customer, url=url)
        customer.http.delete("/simulator/faults")
        while listed := customer.listed():  # one page at a time
            for instance_id in listed:
                customer.destroy(instance_id)
    finally:
        customer.close()
