"""What a training cost and for what, and the plan that ran, as the page shows them."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.support.browser.looks import TAB_PANEL, problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.jobs.peopled_world import ANNS_JOB


def test_costs_are_split_into_what_they_paid_for(resident: Visitor) -> None:
    resident.go(f"/jobs/{ANNS_JOB}?tab=cost")
    panel = resident.page.get_by_role("tabpanel", name="Cost")
    for part in ("Trained", "Set-up", "Stalled", "Idle"):
        expect(panel.get_by_text(part, exact=True)).to_be_visible()
    expect(panel.get_by_text("Quoted")).to_be_visible()
    expect(panel.get_by_role("row", name="gpu")).to_contain_text("sm-")
    expect(panel.get_by_role("heading", name="What was agreed")).to_be_visible()
    assert problems_in_light_and_narrow(resident, within=TAB_PANEL) == []


def test_the_plan_shows_each_command_with_its_end_and_each_parameter_that_differs(resident: Visitor) -> None:
    resident.go(f"/jobs/{ANNS_JOB}?tab=plan")
    panel = resident.page.get_by_role("tabpanel", name="Plan")
    expect(panel.get_by_role("listitem").filter(has_text="train done")).to_contain_text("exit code 0")
    steps = panel.get_by_role("row").filter(has_text="How many steps to train.")
    expect(steps).to_contain_text("20 ◆")
    expect(steps).to_contain_text("600")
    expect(panel.get_by_role("row").filter(has_text="The adapter's rank.")).not_to_contain_text("◆")
    expect(panel.get_by_role("heading", name="Parameters")).to_be_visible()
    assert problems_in_light_and_narrow(resident, within=TAB_PANEL) == []
