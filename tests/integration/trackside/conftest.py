"""A shipped trackside for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.remote.pyz import build_pyz
from tests.support.machines.trackside_bench import Bench, bench


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pyz(tmp_path_factory.mktemp("pyz"))


@pytest.fixture
def job(tmp_path: Path, pyz: Path) -> Iterator[Bench]:
    with bench(tmp_path / "job", pyz=pyz) as made:
        yield made
