"""The Performance Analysis panel of a job: what went wrong, how to fix it, and a new job that does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.support.browser.advised_jobs import full_memory, trained_like_anns
from tests.support.browser.looks import TAB_PANEL, problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld
from tests.support.jobs.stored_jobs import change_row

APPLY = "Apply recommended settings"


@pytest.fixture(scope="module")
def advised(world: PeopledWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A job of ann's whose six workers filled the memory."""
    report = full_memory(tmp_path_factory.mktemp("case"))
    with trained_like_anns(world, "advised", report=report, losses=(0.5, 0.4), workers=6, batch_size=2) as job:
        yield job


def opened(visitor: Visitor, job: str) -> None:
    visitor.open(f"/jobs/{job}?tab=analysis")
    expect(visitor.page.get_by_role("heading", name="Performance Analysis")).to_be_visible()


def test_the_panel_says_to_everybody_what_went_wrong_when_and_how_to_fix_it(visitor: Visitor, advised: str) -> None:
    opened(visitor, advised)
    page = visitor.page
    for figure in ("✕ Critical", "119 GB / 120 GB (99 %)", "12 min", "Not completed, 300 of 600 steps"):
        expect(page.get_by_role("definition").filter(has_text=figure).first).to_be_visible()
    cards = page.get_by_role("list").filter(has=page.get_by_role("heading", level=4)).get_by_role("listitem")
    expect(cards).to_have_count(4)
    expect(cards.first).to_contain_text("Critical")
    expect(cards.first).to_contain_text("6 data loading workers held 71 GB of 120 GB")
    expect(cards.first).to_contain_text("workers 6 → to 0")
    expect(cards.first).to_contain_text("Frees about 71 GB")
    expect(cards.first).to_contain_text("config.process[0].datasets[0].num_workers")
    expect(cards.first).to_contain_text("held by workers at the peak")
    expect(cards.first.get_by_role("img", name="Memory")).to_be_visible()
    expect(cards.nth(1)).to_contain_text("Warning")
    expect(cards.last).to_contain_text("Info")

    memory = page.get_by_role("region", name="Memory over time")
    expect(memory.locator("canvas")).to_be_visible()
    assert problems_in_light_and_narrow(visitor, within=TAB_PANEL) == []
    expect(memory).to_contain_text("warning from 85 %")
    expect(memory).to_contain_text("critical from 95 %")
    memory.get_by_text("2 events in this chart").click()
    expect(memory).to_contain_text("Training ended")

    errors = page.get_by_role("region", name="Errors in the log")
    expect(errors).to_contain_text("killed by signal: Killed")
    expect(errors).to_contain_text("memory 119 GB (99 %)")
    expect(errors.locator("time")).to_be_visible()
    expect(errors.locator("pre")).not_to_be_visible()
    errors.get_by_text("Stack trace").click()
    expect(errors.locator("pre")).to_contain_text("Traceback")


def test_a_link_leads_down_to_the_panel(visitor: Visitor, advised: str) -> None:
    page = visitor.page
    panel = page.get_by_role("button", name=APPLY)
    visitor.open(f"/jobs/{advised}?tab=log")
    page.get_by_role("link", name="See the analysis").click()
    expect(panel).to_be_in_viewport()
    page.reload()
    expect(panel).to_be_in_viewport()


def test_the_recommended_settings_become_a_new_jobs_form(visitor: Visitor, advised: str) -> None:
    opened(visitor, advised)
    page = visitor.page
    page.get_by_role("button", name=APPLY).click()
    dialog = page.get_by_role("dialog", name=APPLY)
    expect(dialog.get_by_role("checkbox", name="workers 6 → 0")).to_be_checked()
    expect(dialog.get_by_role("checkbox", name="batch size 2 → 1")).not_to_be_checked()
    expect(dialog.get_by_role("region", name="To change by hand")).to_contain_text("machine.shm_gb")
    expect(dialog.get_by_role("row", name="workers 6 0")).to_be_visible()
    dialog.get_by_role("checkbox", name="batch size 2 → 1").check()
    expect(dialog.get_by_role("row", name="batch_size 2 1")).to_be_visible()
    assert visitor.accessibility_problems() == []
    dialog.get_by_role("button", name="Open the form with 2 changes").click()
    page.wait_for_url(f"**/new?retry={advised}&apply=*")
    assert page.url.endswith("apply=workers%2Cbatch_size")
    differences = page.get_by_role("region", name="Differences")
    expect(differences.get_by_role("row", name="Workers 6")).to_contain_text("→ 0")
    expect(differences.get_by_role("row", name="Batch size 2")).to_contain_text("→ 1")
    expect(page.get_by_role("textbox", name="Batch size 2 → 1")).to_have_value("1")


def test_what_is_not_analysed_says_so_and_why_it_cannot_be(visitor: Visitor, world: PeopledWorld) -> None:
    with trained_like_anns(world, "unmeasured") as job:
        opened(visitor, job)
        visitor.page.get_by_role("button", name="Analyse now").click()
        expect(visitor.page.get_by_role("alert")).to_contain_text("nothing to analyse")
        visitor.complaints.clear()  # the browser itself reports the refusal


def test_a_job_is_analysed_again_and_compared_with_offers(visitor: Visitor) -> None:
    opened(visitor, ANNS_JOB)
    page = visitor.page
    page.get_by_role("button", name="Analyse again").click()
    expect(page.get_by_text("Analysed anns cats")).to_be_visible()
    page.get_by_role("button", name="Compare with what can be rented now").click()
    expect(page.get_by_text("this comparison is not stored")).to_be_visible()
    page.get_by_role("button", name="Show the stored analysis").click()
    expect(page.get_by_text("this comparison is not stored")).not_to_be_visible()


def test_the_analysis_of_an_older_attempt_says_so(
    visitor: Visitor, world: PeopledWorld, tmp_path_factory: pytest.TempPathFactory
) -> None:
    report = full_memory(tmp_path_factory.mktemp("older"))
    with trained_like_anns(world, "second-try", report=report) as job:
        change_row(world.store, job, attempt=2)
        opened(visitor, job)
        expect(visitor.page.get_by_text("This is the analysis of attempt 1")).to_be_visible()
        expect(visitor.page.get_by_role("button", name="Analyse attempt 2")).to_be_visible()


def test_who_may_only_look_sees_the_advice_and_cannot_apply_it(visits: Visits, advised: str) -> None:
    with visits.of("reader") as reader:
        opened(reader, advised)
        expect(reader.page.get_by_role("button", name=APPLY)).to_be_disabled()
        expect(reader.page.get_by_role("button", name="Analyse again")).to_have_count(0)
