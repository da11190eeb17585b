"""Trainings with real frameworks, on the CPU: `make test-integrations`.

`INTEGRATIONS_PYTHON` names the Python that has the frameworks. Tests of one that it lacks are left out by selection,
not skipped.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.integrations.trainings import Place

HERE = Path(__file__).parent
_LIST = "import importlib.util as u, sys; print(*[name for name in sys.argv[1:] if u.find_spec(name)])"
_FRAMEWORKS = ("accelerate", "jax", "keras", "lightning", "pytorch_lightning", "torch", "transformers")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path.is_relative_to(HERE) and not _is_installed(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_installed(item: pytest.Item) -> bool:
    python = os.environ.get("INTEGRATIONS_PYTHON")
    needed = {name for mark in item.iter_markers("framework") for name in mark.args}
    return python is not None and needed <= _installed(python)


@cache
def _installed(python: str) -> frozenset[str]:
    listed = subprocess.run([python, "-c", _LIST, *_FRAMEWORKS], check=True, capture_output=True, text=True, timeout=60)
    return frozenset(listed.stdout.split())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(folder=tmp_path, python=os.environ["INTEGRATIONS_PYTHON"])
