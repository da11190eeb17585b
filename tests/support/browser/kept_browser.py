"""One Chromium for all files of browser tests that a process runs, with other tests between them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser

from tests.support.browser.visitor import chromium


class KeptBrowser:
    """Playwright leaves its event loop as this thread's running one, where no `asyncio.run` can start another.

    So that loop is put away while the browser is not in use. Playwright itself sets it in the same way.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._loop = asyncio.get_running_loop()
        self.put_away()

    def take_out(self) -> None:
        asyncio._set_running_loop(self._loop)

    def put_away(self) -> None:
        asyncio._set_running_loop(None)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For a block that needs an event loop of its own, also while the browser is in use."""
        running = asyncio._get_running_loop()
        self.put_away()
        try:
            yield
        finally:
            asyncio._set_running_loop(running)

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        self.take_out()
        try:
            yield self.browser
        finally:
            self.put_away()


@contextmanager
def kept_browser() -> Iterator[KeptBrowser]:
    """Not in use at first."""
    with chromium() as opened:
        kept = KeptBrowser(opened)
        try:
            yield kept
        finally:
            kept.take_out()  # it is closed in its own loop
