"""A view in the looks that people use: light, dark, and on a narrow screen."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.support.browser.visitor import Visitor


def problems_in_every_look(visitor: Visitor, path: str, heading: str, *, text: str = "") -> list[str]:
    """What axe finds in the view in light, dark and at 380 px, and whether the page scrolls sideways there.

    `text`: what is seen when the part that is meant has come.
    """
    found: list[str] = []
    page = visitor.page
    for theme, width in (("light", 1280), ("dark", 1280), ("dark", 380)):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
        visitor.open(path)
        expect(page.get_by_role("heading", name=heading, exact=True).first).to_be_visible()
        expect(page.get_by_text("● live")).to_be_visible()
        if text:
            expect(page.get_by_text(text).first).to_be_visible()
        found += [f"{theme} {width}: {problem}" for problem in visitor.accessibility_problems()]
        scrolled = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if scrolled > 0:
            found.append(f"{theme} {width}: the page is {scrolled} px wider than the screen")
    return found
