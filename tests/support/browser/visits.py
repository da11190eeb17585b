"""The people of one installation in one browser: each signs in once, and comes again with a fresh page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.browser.visitor import Visitor, attentive, new_context


class Visits:
    """One visit at a time. It begins with nothing remembered but the session, as in a browser of its own.

    All have one profile, whose process and compiled scripts live on: to start them is most of what a page costs.
    """

    def __init__(self, browser: Browser, url: str, tokens: Mapping[str, str]) -> None:
        self._browser = browser
        self._url = url
        self._tokens = tokens
        self._sessions: dict[str, list[Any]] = {}
        self._profile: tuple[BrowserContext, Page] | None = None
        self._is_busy = False

    @contextmanager
    def of(self, who: str) -> Iterator[Visitor]:
        """A page of this person, which has opened nothing yet."""
        assert not self._is_busy, "a visit at a time: use `visiting` for a second person"
        context = self._prepared()
        self._sign_in(context, who)
        visitor = Visitor(context, self._url)
        self._is_busy = True
        try:
            with attentive(visitor):
                yield visitor
        finally:
            self._is_busy = False
            visitor.page.close()

    def close(self) -> None:
        if self._profile is not None:
            self._profile[0].close()

    def _prepared(self) -> BrowserContext:
        if self._profile is None:
            context = new_context(self._browser)
            # A page that stays keeps the process of this site alive; it is also where the site's memory can be reached.
            parked = context.new_page()
            parked.goto(f"{self._url}/theme.js")
            self._profile = context, parked
        context, parked = self._profile
        parked.evaluate("localStorage.clear()")
        context.clear_cookies()
        return context

    def _sign_in(self, context: BrowserContext, who: str) -> None:
        if who in self._sessions:
            context.add_cookies(self._sessions[who])
            return
        answer = context.request.post(f"{self._url}/api/session", data={"code": self._tokens[who]})
        assert answer.ok, answer.text()
        self._sessions[who] = context.cookies()
