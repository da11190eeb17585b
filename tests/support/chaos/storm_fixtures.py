"""A forge for workers, and a simulator that rents machines to them; their disks lie below `simulator/machines`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.capabilities import require
from tests.support.chaos.storm_station import Hold, StormForge, holding, storm_forge
from tests.support.vast.simulated_vast import quick_settings


@pytest.fixture(scope="session")
def forge() -> StormForge:
    require("sshd")
    return storm_forge()


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield url


@pytest.fixture
def hold() -> Iterator[Hold]:
    with holding() as hold:
        yield hold
