"""The search over everything, and the keys of each page."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits


@pytest.fixture
def visitor(visits: Visits) -> Iterator[Visitor]:
    with visits.of("administrator") as opened:
        opened.open("/")
        yield opened


def test_the_search_finds_trainings_models_recipes_settings_and_actions(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    options = page.get_by_role("option")
    for typed, expected in (
        ("annsjob", "anns cats"),
        ("tiny-lora", "tiny-lora@1"),
        ("doctor", "Doctor"),
        ("dark mode", "Dark colours"),
    ):
        field.fill(typed)
        expect(options.filter(has_text=expected).first).to_be_visible()
    field.fill("no such thing")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    assert visitor.accessibility_problems() == []
    field.fill("anns cats")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    chosen = options.nth(1).get_attribute("id")
    assert field.get_attribute("aria-activedescendant") == chosen
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/annsjob")


def test_an_action_of_the_search_acts(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search").fill("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_question_mark_lists_the_keys_of_the_page(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Mark all as read")
    expect(keys).to_contain_text("Go to Machines")
    assert visitor.accessibility_problems() == []
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/money")
    page.keyboard.press("?")
    expect(keys).to_contain_text("Go to Machines")
    expect(keys).not_to_contain_text("Mark all as read")


def test_keys_do_nothing_while_somebody_types_or_behind_a_dialog(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/settings?section=notifications")
    page.get_by_label("Message", exact=True).fill("")
    page.get_by_label("Message", exact=True).press_sequentially("g i? n/")
    expect(page.get_by_label("Message", exact=True)).to_have_value("g i? n/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("section=notifications")
    page.get_by_role("heading", name="Notifications").click()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("n")
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.url.endswith("section=notifications")


def test_a_key_of_a_button_with_the_focus_stays_its_own(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("button", name="Search").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
