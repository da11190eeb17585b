from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.providers.base import Provider
from stationmaster.simulator.harness import simulator_thread
from tests.support.machines.provider_benches import LIVE, MAKERS, Bench, bench
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.vast.simulated_vast import quick_settings


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every provider that needs no account; with --live only the one that does."""
    if "bench_name" in metafunc.fixturenames:
        live = metafunc.config.getoption("--live")
        metafunc.parametrize("bench_name", [LIVE] if live else sorted(MAKERS.keys() - {LIVE}), scope="function")


@pytest.fixture(scope="session")
def simulator_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("simulator")
    with simulator_thread(quick_settings(home, backend="paper", market_period_seconds=0.0)) as url:
        yield url


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def held(bench_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """The provider under test, with what the suite must know of it."""
    with bench(bench_name, tmp_path, request) as made:
        yield made


@pytest.fixture
def provider(held: Bench) -> Provider:
    return held.provider
