"""Machines: administrators see all of them with the sweep's verdict, others are told why they do not."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits


def test_a_sweep_shows_first_what_it_would_do(visitor: Visitor) -> None:
    visitor.open("/machines")
    sweep = visitor.page.get_by_role("button", name="Sweep now")
    expect(sweep).to_be_visible()
    assert problems_in_light_and_narrow(visitor) == []
    sweep.click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Machines that no training needs are destroyed")
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)


def test_who_may_not_see_machines_is_told(visits: Visits) -> None:
    with visits.of("ann") as visitor:
        visitor.open("/machines")
        expect(visitor.page.get_by_role("heading", name="Only administrators see machines")).to_be_visible()
