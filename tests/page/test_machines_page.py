"""Machines: administrators see all of them with the sweep's verdict, others are told why they do not."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser.visitor import Visitor, visiting
from tests.support.jobs.peopled_world import PeopledWorld


def test_a_sweep_shows_first_what_it_would_do(visitor: Visitor) -> None:
    visitor.open("/machines")
    visitor.page.get_by_role("button", name="Sweep now").click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Machines that no training needs are destroyed")
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)


def test_who_may_not_see_machines_is_told(browser: Browser, world: PeopledWorld) -> None:
    with visiting(browser, world.urls[0]) as visitor:
        visitor.sign_in(world.tokens["ann"])
        visitor.open("/machines")
        expect(visitor.page.get_by_role("heading", name="Only administrators see machines")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 380)])
def test_the_view_is_accessible_and_fits(browser: Browser, world: PeopledWorld, scheme: str, width: int) -> None:
    with visiting(browser, world.urls[0], color_scheme=scheme, viewport={"width": width, "height": 800}) as visitor:
        visitor.sign_in(world.tokens["administrator"])
        visitor.open("/machines")
        expect(visitor.page.get_by_role("button", name="Sweep now")).to_be_visible()
        assert visitor.accessibility_problems() == []
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
