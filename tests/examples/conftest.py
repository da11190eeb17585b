"""What the examples are run with: a home of its own for each test file, and a small dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.commands.example_runs import Person
from tests.support.jobs.local_world import write_pictures


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    with Home(tmp_path_factory.mktemp("person")) as home:
        yield Person(home)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("datasets") / "cats")
