"""Runs side by side: what differs, their charts over each other, and what came of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.support.browser.advised_jobs import trained_like_anns
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld


@pytest.fixture(scope="module")
def other(world: PeopledWorld) -> Iterator[str]:
    """A job like ann's with another learning rate."""
    with trained_like_anns(world, "steeper", losses=(1.5, 0.7, 0.25), learning_rate=0.5) as job:
        yield job


def opened(resident: Visitor, *jobs: str) -> None:
    resident.go("/compare?" + "&".join(f"jobs={job}" for job in jobs))
    expect(resident.page.get_by_role("heading", name=f"Compare {len(jobs)} runs")).to_be_visible()


def test_only_what_differs_is_listed_and_the_rest_is_folded(resident: Visitor, other: str) -> None:
    opened(resident, ANNS_JOB, other)
    page = resident.page
    differing = page.get_by_role("region", name="What differs").last
    expect(differing.get_by_role("row", name="learning_rate 0.01 0.5")).to_be_visible()
    expect(differing.get_by_role("row", name="optimizer")).to_have_count(0)
    page.get_by_text("settings are the same").click()
    expect(page.get_by_role("definition").filter(has_text="adam")).to_be_visible()
    outcome = page.get_by_role("region", name="Outcome, time and cost").last
    expect(outcome.get_by_role("row", name="Outcome")).to_contain_text("Completed")
    expect(outcome.get_by_role("row", name="Last loss")).to_contain_text("0.25")
    assert resident.page.url.endswith(f"jobs={ANNS_JOB}&jobs={other}")


def test_charts_lie_over_each_other_and_the_address_keeps_how(resident: Visitor, other: str) -> None:
    opened(resident, ANNS_JOB, other)
    page = resident.page
    chart = page.get_by_role("figure", name="Loss")
    expect(chart.locator("canvas")).to_be_visible()
    assert problems_in_light_and_narrow(resident) == []
    expect(chart).to_contain_text("A anns cats")
    expect(chart).to_contain_text(f"B {other}: first 1.5, last 0.25")
    page.get_by_label("Over").select_option("time")
    page.get_by_label("Log scale").check()
    expect(page.get_by_label("Log scale")).to_be_checked()
    page.wait_for_url("**axis=time**")
    page.get_by_role("slider", name="Cursor of Loss").focus()
    page.keyboard.press("+")
    page.wait_for_url("**seconds=**")
    page.reload()
    expect(page.get_by_label("Over")).to_have_value("time")
    expect(page.get_by_label("Log scale")).to_be_checked()
    expect(page.get_by_role("figure", name="Loss")).to_contain_text("A anns cats")
    page.get_by_role("slider", name="Cursor of Loss").focus()
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("seconds="))


def test_samples_stand_in_rows_by_prompt_at_the_step_of_one_slider(resident: Visitor, other: str) -> None:
    opened(resident, ANNS_JOB, other)
    samples = resident.page.get_by_role("region", name="Samples")
    expect(samples.get_by_role("img").first).to_be_visible()
    expect(samples.get_by_text("A anns cats, step 20").first).to_be_visible()
    expect(samples).to_contain_text(f"No samples: B {other}.")
    samples.get_by_role("slider").press("ArrowLeft")
    expect(samples.get_by_text("A anns cats, step 0").first).to_be_visible()
    resident.page.wait_for_url("**sample=0**")


def test_runs_are_added_moved_and_removed_and_keep_their_letter(resident: Visitor, other: str) -> None:
    resident.go(f"/compare?jobs={ANNS_JOB}")
    page = resident.page
    page.get_by_label("Find a training").fill("steep")
    page.get_by_role("button", name=other).click()
    heads = page.get_by_role("region", name="What differs").last.get_by_role("columnheader")
    expect(heads).to_have_count(2)
    expect(heads.first).to_contain_text("A")
    expect(heads.first).to_contain_text("anns cats")
    page.get_by_role("button", name="Move or remove run A").click()
    page.get_by_role("menuitem", name="Move right").click()
    expect(heads.first).to_contain_text(other)
    expect(heads.first).to_contain_text("B")
    page.get_by_role("button", name="Move or remove run B").click()
    page.get_by_role("menuitem", name="Remove from the comparison").click()
    expect(page.get_by_role("heading", name=f"Choose a run to compare with {ANNS_JOB}")).to_be_visible()


def test_with_nothing_to_compare_recent_runs_are_offered(resident: Visitor, other: str) -> None:
    resident.go("/compare")
    page = resident.page
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    page.get_by_role("checkbox", name="anns cats").check()
    page.get_by_role("checkbox", name=other).check()
    assert resident.accessibility_problems() == []
    page.get_by_role("button", name="Compare 2 runs").click()
    expect(page.get_by_role("heading", name="Compare 2 runs")).to_be_visible()


def test_a_job_that_does_not_exist_is_named_with_others_to_choose(resident: Visitor) -> None:
    resident.go(f"/compare?jobs={ANNS_JOB}&jobs=gone")
    expect(resident.page.get_by_role("alert")).to_contain_text("gone")
    expect(resident.page.get_by_label("Find a training")).to_be_visible()
    resident.complaints.clear()  # the browser itself reports the refusal
