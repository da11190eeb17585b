"""The page of one training: header, stages, charts, what to know, tabs; zoom and smoothing in the address."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import ANNS_JOB

PATH = f"/jobs/{ANNS_JOB}"


def drawn_pixels(page: Page, title: str) -> int:
    """How many pixels of a chart's canvas are not empty."""
    chart = page.get_by_role("figure", name=title, exact=True)
    expect(chart.locator("canvas")).to_be_visible()
    return int(
        chart.locator("canvas").evaluate(
            """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
                .data.filter((value, place) => place % 4 === 3 && value > 0).length"""
        )
    )


def test_an_ended_training_has_its_words_charts_and_values_for_everybody(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open(PATH)
    expect(page.get_by_role("heading", level=1, name="anns cats")).to_be_visible()
    expect(page.get_by_text("Completed").first).to_be_visible()
    expect(page.get_by_role("list", name="Stages").get_by_role("listitem")).to_have_count(10)
    know = page.get_by_role("complementary", name="What to know")
    expect(know).to_contain_text("Trained")
    expect(know).to_contain_text("Cost $")
    for title in ("Loss", "Speed", "Learning rate", "Memory"):
        assert drawn_pixels(page, title) > 500, title
    loss = page.get_by_role("figure", name="Loss", exact=True)
    expect(loss).to_have_accessible_description(re.compile(r"Loss: first [\d.e-]+, last .* lowest .* highest"))
    expect(page.get_by_role("tab")).to_have_count(6)
    assert problems_in_light_and_narrow(visitor) == []
    assert drawn_pixels(page, "Loss") > 500, "also after the colours and the width have changed"
    page.get_by_role("button", name="Values of Loss as a table").click()
    dialog = page.get_by_role("dialog", name="Loss: values")
    expect(dialog.get_by_role("row").nth(1)).to_be_visible()
    expect(dialog.get_by_role("link", name="Download all as CSV")).to_have_attribute(
        "href", f"/api/jobs/{ANNS_JOB}/metrics/export?format=csv&table=StepMetric"
    )


def test_zoom_smoothing_and_tab_are_in_the_address_and_one_cursor_is_for_all_charts(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open(f"{PATH}?smooth=20&log=1&tab=events")
    expect(page.get_by_label("Smoothing")).to_have_value("20")
    expect(page.get_by_label("Log scale")).to_be_checked()
    expect(page.get_by_role("tab", name="Events")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("smoothed").first).to_be_visible()
    plot = page.get_by_role("figure", name="Loss", exact=True).locator(".u-over")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 50, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=\d+.*to=\d+|to=\d+.*from=\d+"))
    expect(page).to_have_url(re.compile("smooth=20"))
    page.get_by_label("Smoothing").select_option("0")
    expect(page.get_by_text("smoothed")).to_have_count(0)
    plot.dblclick()
    expect(page).not_to_have_url(re.compile("from="))
    loss = page.get_by_role("slider", name="Cursor of Loss")
    loss.focus()
    page.keyboard.press("Home")
    expect(loss).to_have_attribute("aria-valuetext", re.compile(r"^step [01]: Loss [\d.]+"))
    expect(page.get_by_role("slider", name="Cursor of Learning rate")).to_contain_text("step ")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("from="))
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("from="))


def test_what_somebody_may_not_do_is_not_offered(visits: Visits) -> None:
    with visits.of("reader") as reader:
        reader.open(PATH)
        expect(reader.page.get_by_role("button", name="Compare with…")).to_be_visible()
        expect(reader.page.get_by_role("button", name="Train again…")).to_have_count(0)
        expect(reader.page.get_by_role("button", name="More actions")).to_have_count(0)


def test_removing_asks_first_and_names_what_is_lost(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open(PATH)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Remove…").click()
    dialog = page.get_by_role("dialog", name="Remove anns cats?")
    expect(dialog).to_contain_text("cannot be undone")
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)
