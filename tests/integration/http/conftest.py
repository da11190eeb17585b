"""A served installation with people in it, shared by the tests of one file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.jobs.peopled_world import PeopledWorld


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeopledWorld]:
    with PeopledWorld(tmp_path_factory.mktemp("people")) as world:
        yield world
