from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser.kept_browser import KeptBrowser, kept_browser
from tests.support.browser.served_station import ServedStation, signed_in
from tests.support.browser.visitor import Visitor, attentive
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import PeopledWorld


@pytest.fixture(scope="session")
def kept() -> Iterator[KeptBrowser]:
    with kept_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def world(kept: KeptBrowser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeopledWorld]:
    """A served installation with people and one finished training, which tests only look at."""
    folder: Path = tmp_path_factory.mktemp("page")
    with ExitStack() as opened:
        with kept.aside():
            world = opened.enter_context(PeopledWorld(folder))
        yield world


@pytest.fixture(scope="session")
def world_visits(kept: KeptBrowser, world: PeopledWorld) -> Visits:
    return Visits(kept.browser, world.urls[0], world.tokens)


@pytest.fixture(scope="module")
def browser(kept: KeptBrowser) -> Iterator[Browser]:
    """In use for one file: in its tests, `asyncio.run` is not possible in this thread."""
    with kept.in_use() as opened:
        yield opened


@pytest.fixture
def visits(browser: Browser, world_visits: Visits) -> Visits:
    """The world's people in this browser."""
    return world_visits


@pytest.fixture
def visitor(visits: Visits) -> Iterator[Visitor]:
    """The administrator, signed in, before a page without an address."""
    with visits.of("administrator") as opened:
        yield opened


@pytest.fixture(scope="module")
def open_page(browser: Browser, world_visits: Visits) -> Iterator[Visitor]:
    with world_visits.of("administrator") as opened:
        opened.open("/inbox")
        yield opened


@pytest.fixture
def resident(open_page: Visitor) -> Iterator[Visitor]:
    """The administrator, in one page for all tests of a file: `go` leads from the inbox to a view, and loads nothing.

    For views that keep what they show in their address, and in files whose tests make no other visit.
    """
    open_page.go("/inbox")  # nothing of the view before is there any more
    expect(open_page.page.get_by_role("heading", level=1, name="Inbox")).to_be_visible()
    with attentive(open_page):
        yield open_page


@pytest.fixture(scope="module")
def people(browser: Browser, station: ServedStation) -> Iterator[Visits]:
    """Those of the station that a file serves for itself, to whom things happen that the world's never see."""
    with signed_in(browser, station) as visits:
        yield visits


@pytest.fixture
def person(people: Visits) -> Iterator[Visitor]:
    """Whom the file's own station belongs to, signed in."""
    with people.of("me") as opened:
        yield opened
