from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser.visitor import Visitor, chromium, visiting
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


@pytest.fixture
def visitor(browser: Browser, world: PeopledWorld) -> Iterator[Visitor]:
    """The administrator's browser, signed in."""
    with visiting(browser, world.urls[0]) as opened:
        opened.sign_in(world.tokens["administrator"])
        yield opened
