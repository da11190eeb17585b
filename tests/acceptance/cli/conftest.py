"""Homes for the command line, and a small captioned image set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import QUICK, Home, Ran
from tests.support.jobs.local_world import write_pictures


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[tuple[Home, Ran]]:
    """A home in which `train --watch` trained the job `done` to its end, and what the command said meanwhile."""
    with Home(tmp_path_factory.mktemp("trained")) as opened:
        train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--name", "cats", "--id", "done")
        yield opened, opened.run_installed(*train, "--watch", *QUICK)
