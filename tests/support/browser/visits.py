"""The people of one installation in one browser: each signs in once, and comes again with a fresh page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.browser.visitor import Visitor, attentive, new_context


class Visits:
    """A visit begins with nothing remembered but the session, as in a browser of its own, and costs a tenth of one."""

    def __init__(self, browser: Browser, url: str, tokens: Mapping[str, str]) -> None:
        self._browser = browser
        self._url = url
        self._tokens = tokens
        self._profiles: dict[str, tuple[BrowserContext, Page]] = {}

    @contextmanager
    def of(self, who: str) -> Iterator[Visitor]:
        """A page of this person, which has opened nothing yet."""
        context, parked = self._profile(who)
        parked.evaluate("localStorage.clear()")
        visitor = Visitor(context, self._url)
        try:
            with attentive(visitor):
                yield visitor
        finally:
            visitor.page.close()

    def _profile(self, who: str) -> tuple[BrowserContext, Page]:
        if who not in self._profiles:
            context = new_context(self._browser)
            answer = context.request.post(f"{self._url}/api/session", data={"code": self._tokens[who]})
            assert answer.ok, answer.text()
            # A page that stays keeps the process of this site alive, with its compiled scripts.
            parked = context.new_page()
            parked.goto(f"{self._url}/theme.js")
            self._profiles[who] = context, parked
        return self._profiles[who]
