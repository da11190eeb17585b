"""A view in the looks that people use: wide and light, narrow and dark, wide and dark."""

from __future__ import annotations

import re
from typing import Literal

from playwright.sync_api import TimeoutError as NotInTime
from playwright.sync_api import expect

from tests.support.browser.visitor import Visitor

#: The part of the page of a training or of the recipes that differs from tab to tab.
TAB_PANEL = "[role=tabpanel]"
_WIDE, _NARROW = 1280, 380
_SETTLE_MS = 30_000


def problems_in_light_and_narrow(visitor: Visitor, *, within: str | None = None) -> list[str]:
    """What axe finds on the page as it is, light and wide, then dark at 380 px; and whether it scrolls sideways there.

    Everything is fetched before. The page is not loaded again: colours and width change as when other colours are
    chosen and a screen is turned. The third look, wide and dark, is that of `test_exhibition.py`, for every view.
    """
    _fetched(visitor)
    _look(visitor, "light", _WIDE)
    found = [f"light: {problem}" for problem in visitor.accessibility_problems(within=within)]
    _look(visitor, "dark", _NARROW)
    found += [f"narrow: {problem}" for problem in visitor.accessibility_problems(within=within)]
    try:
        # A chart takes a moment to follow the width.
        visitor.page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth", timeout=_SETTLE_MS
        )
    except NotInTime:
        found.append("narrow: the page scrolls sideways")
    _look(visitor, "light", _WIDE)
    return found


def problems_in_dark(visitor: Visitor, *, within: str | None = None) -> list[str]:
    """What axe finds on the page as it is, dark and wide, with everything fetched."""
    _fetched(visitor)
    _look(visitor, "dark", _WIDE)
    return visitor.accessibility_problems(within=within)


def _fetched(visitor: Visitor) -> None:
    """As `design/Empty.tsx` holds the place of what is to come."""
    expect(visitor.page.get_by_role("status").filter(has_text=re.compile("^Loading "))).to_have_count(0)


def _look(visitor: Visitor, colours: Literal["light", "dark"], width: int) -> None:
    """As `frame/theme.ts` changes the colours."""
    visitor.page.set_viewport_size({"width": width, "height": 800})
    visitor.page.evaluate(
        """theme => {
            document.documentElement.dataset.theme = theme;
            window.dispatchEvent(new Event("themechange"));
        }""",
        colours,
    )
