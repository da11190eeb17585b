"""The shipped recipes with their real trainers, on the CPU, with tiny random weights: `make test-trainers`.

Each trainer's folder, and the Python that has its packages, come from the environment; tests of a trainer that is not
named there are left out by selection, not skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """A trainer on this computer; its packages may be all that there is of it."""

    python: str
    folder: Path | None = None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.is_relative_to(HERE) and not _is_named(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_named(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("trainer")
    return mark is not None and f"{mark.args[0]}_PYTHON" in os.environ


@pytest.fixture(scope="session")
def ai_toolkit() -> Trainer:
    return _trainer("AI_TOOLKIT")


@pytest.fixture(scope="session")
def sd_scripts() -> Trainer:
    return _trainer("SD_SCRIPTS")


@pytest.fixture(scope="session")
def trl() -> Trainer:
    return Trainer(python=os.environ["TRL_PYTHON"])


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose recipes are those that the test puts into `tmp_path / "recipes"`, and the shipped ones."""
    (tmp_path / "recipes").mkdir()
    with Home(tmp_path) as opened:
        opened.environ["STATIONMASTER_RECIPES"] = str(tmp_path / "recipes")
        yield opened


def _trainer(name: str) -> Trainer:
    return Trainer(python=os.environ[f"{name}_PYTHON"], folder=Path(os.environ[name]))
