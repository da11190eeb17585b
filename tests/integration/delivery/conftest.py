"""A Hub of its own for every test, and a shipped trackside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.remote.pyz import build_pyz
from tests.support.machines.trackside_bench import Bench, bench
from tests.support.servers.hub_server import HubServer


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pyz(tmp_path_factory.mktemp("pyz"))


@pytest.fixture
def machine(tmp_path: Path, pyz: Path) -> Iterator[Bench]:
    """A job's folder on a machine."""
    with bench(tmp_path / "machine", pyz=pyz, is_forked=True) as made:
        yield made
