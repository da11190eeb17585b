from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser.visitor import Visitor, chromium
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import PeopledWorld


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeopledWorld]:
    """A served installation with people and one finished training, which tests only look at."""
    folder: Path = tmp_path_factory.mktemp("page")
    with PeopledWorld(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def browser(world: PeopledWorld) -> Iterator[Browser]:
    """After the world, and only for one file: Playwright keeps an event loop in this thread, where no other can run."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def visits(browser: Browser, world: PeopledWorld) -> Visits:
    """The world's people in this browser."""
    return Visits(browser, world.urls[0], world.tokens)


@pytest.fixture
def visitor(visits: Visits) -> Iterator[Visitor]:
    """The administrator, signed in, before a page without an address."""
    with visits.of("administrator") as opened:
        yield opened
