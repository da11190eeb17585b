"""A shipped trackside for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.remote.pyz import build_pyz
from tests.support.machines.small_disk import small_disk as a_small_disk
from tests.support.machines.trackside_bench import Bench, bench


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Room for a job and little more."""
    with a_small_disk(tmp_path / "disk", mebibytes=8) as disk:
        yield disk


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pyz(tmp_path_factory.mktemp("pyz"))


@pytest.fixture
def job(tmp_path: Path, pyz: Path) -> Iterator[Bench]:
    """Its verbs run in forks of a process that has imported trackside."""
    with bench(tmp_path / "job", pyz=pyz, is_forked=True) as made:
        yield made


@pytest.fixture
def job_with_python(tmp_path: Path, pyz: Path) -> Iterator[Bench]:
    """Its verbs run in forks of a Python that was started with its archive."""
    with bench(tmp_path / "job", pyz=pyz) as made:
        yield made
