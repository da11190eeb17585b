"""A person with a browser: real Chromium on the page, which must say nothing in its console."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.support.capabilities import installed_chromium, require

_AXE = Path(__file__).parents[3] / "web/node_modules/axe-core/axe.min.js"
_UNDISTURBED = Path(__file__).with_name("undisturbed_chromium")
_WAIT_MS = 30_000
#: A page lives for seconds here: no process for a page that is still empty, and no compiler that pays off in minutes.
_SPARING = ("--process-per-site", "--renderer-process-limit=1", "--js-flags=--no-turbofan")
_WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
expect.set_options(timeout=_WAIT_MS)  # a busy computer takes longer than Playwright's five seconds


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium without a window, deaf to changes of the network. Skips the test where it is missing."""
    require("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_UNDISTURBED,
            env={**os.environ, "CHROMIUM": str(installed_chromium())},
            headless=True,
            args=["--no-sandbox", "--disable-gpu", *_SPARING],
        )
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """One person's browser window. `complaints` is what the console said that a person would call an error."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        context.set_default_timeout(_WAIT_MS)
        self.context = context
        self.url = url
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")

    def sign_in(self, code: str) -> None:
        """With the code of a one-time link, or a token."""
        self.page.goto(f"{self.url}/sign-in#{code}")
        self.page.wait_for_url(f"{self.url}/")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")

    def go(self, path: str) -> None:
        """As a link of the page that is open: nothing is loaded again."""
        self.page.evaluate("path => history.pushState(null, '', path)", path)

    def accessibility_problems(self, *, within: str | None = None) -> list[str]:
        """What axe finds on the page as it is now, or in one part of it, of the rules of WCAG 2 A and AA."""
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(_AXE.read_text())
        found: dict[str, Any] = json.loads(
            self.page.evaluate(
                """async ([within, rules]) => JSON.stringify(await axe.run(within ?? document, {
                    runOnly: rules, resultTypes: ["violations"]
                }))""",
                [within, _WCAG],
            )
        )
        return [
            f"{rule['impact']}: {rule['help']}: {node['html'][:200]}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]


def new_context(browser: Browser, **about: Any) -> BrowserContext:
    """A fresh profile; nothing moves in it, so that no test waits for an animation."""
    about.setdefault("viewport", {"width": 1280, "height": 800})
    about.setdefault("reduced_motion", "reduce")
    return browser.new_context(**about)


@contextmanager
def attentive(visitor: Visitor) -> Iterator[None]:
    """Fails at the end of the block if the console has complained."""
    yield
    assert visitor.complaints == [], visitor.complaints


@contextmanager
def visiting(browser: Browser, url: str, **about: Any) -> Iterator[Visitor]:
    """A visitor with a fresh profile; `about` goes to the browser: `color_scheme`, `viewport`."""
    context = new_context(browser, **about)
    try:
        visitor = Visitor(context, url)
        with attentive(visitor):
            yield visitor
    finally:
        context.close()
