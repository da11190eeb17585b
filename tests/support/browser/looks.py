"""A view in the looks that people use: light, dark, and on a narrow screen."""

from __future__ import annotations

from typing import Literal

from playwright.sync_api import TimeoutError as NotInTime

from tests.support.browser.visitor import Visitor

#: The rules that look at colours: nothing else differs between a light and a dark page.
_OF_COLOURS = ("color-contrast", "link-in-text-block")
_WIDE, _NARROW = 1280, 380
_SETTLE_MS = 5_000


def problems_in_every_look(visitor: Visitor) -> list[str]:
    """What axe finds on the page as it is now, in light, dark and at 380 px, and whether it scrolls sideways there.

    It is not loaded again: colours and width change as when other colours are chosen and a screen is turned.
    """
    found = problems_in_both_colours(visitor)
    _look(visitor, "dark", _NARROW)
    found += [f"narrow: {problem}" for problem in visitor.accessibility_problems()]
    try:
        # A chart takes a moment to follow the width.
        visitor.page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth", timeout=_SETTLE_MS
        )
    except NotInTime:
        found.append("narrow: the page scrolls sideways")
    _look(visitor, "light", _WIDE)
    return found


def problems_in_both_colours(visitor: Visitor) -> list[str]:
    _look(visitor, "light", _WIDE)
    found = [f"light: {problem}" for problem in visitor.accessibility_problems()]
    _look(visitor, "dark", _WIDE)
    found += [f"dark: {problem}" for problem in visitor.accessibility_problems(rules=_OF_COLOURS)]
    return found


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
