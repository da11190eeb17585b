from __future__ import annotations

from collections.abc import Iterator

import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.official_vast import OfficialClient
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path_factory.mktemp("simulator"))) as address:
        yield address


@pytest.fixture(scope="module")
def vastai(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficialClient]:
    client = OfficialClient(url, API_KEY, tmp_path_factory.mktemp("client"))
    yield client
    client.close()


@pytest.fixture
def customer(url: str) -> Iterator[Customer]:
    customer = Customer(url)
    yield customer
    customer.close()
