"""Signing a browser in and out, as a person does it."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import visiting
from tests.support.jobs.peopled_world import PeopledWorld


def user_menu(page: Page) -> Locator:
    return page.get_by_role("banner").get_by_role("button", name=re.compile("^me"))


def test_a_link_signs_in_once_and_leaves_no_code_in_the_address(browser: Browser, world: PeopledWorld) -> None:
    link = world.local.tokens.create_link("me")
    with visiting(browser, world.urls[0]) as visitor:
        visitor.sign_in(link.code)
        expect(user_menu(visitor.page)).to_be_visible()
        assert link.code not in visitor.page.url
    with visiting(browser, world.urls[0]) as another:
        another.open(f"/sign-in#{link.code}")
        expect(another.page.get_by_role("alert")).to_contain_text("link")
        assert another.complaints, "the browser itself reports the refusal"
        another.complaints.clear()


def test_an_address_opened_without_a_session_leads_to_the_sign_in_and_back(
    browser: Browser, world: PeopledWorld
) -> None:
    with visiting(browser, world.urls[0]) as visitor:
        visitor.open("/recipes")
        visitor.page.get_by_label("Token").fill(world.tokens["ann"])
        visitor.page.get_by_role("button", name="Sign in").click()
        expect(visitor.page.get_by_role("heading", name="Recipes")).to_be_visible()
        visitor.complaints.clear()  # the browser itself reports that the first question was refused


def test_signing_out_ends_the_session(browser: Browser, world: PeopledWorld) -> None:
    with visiting(browser, world.urls[0]) as visitor:
        visitor.sign_in(world.tokens["administrator"])
        user_menu(visitor.page).click()
        visitor.page.get_by_role("menuitem", name="Sign out").click()
        expect(visitor.page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert problems_in_light_and_narrow(visitor) == []
        assert visitor.page.request.get(f"{visitor.url}/api/server").status == 401
        visitor.complaints.clear()


def test_colours_follow_the_system_until_they_are_chosen(browser: Browser, world: PeopledWorld) -> None:
    with visiting(browser, world.urls[0], color_scheme="dark") as visitor:
        visitor.sign_in(world.tokens["administrator"])
        theme = visitor.page.locator("html")
        expect(theme).to_have_attribute("data-theme", "dark")
        user_menu(visitor.page).click()
        visitor.page.get_by_role("menuitem", name="Light colours").click()
        visitor.page.reload()
        expect(theme).to_have_attribute("data-theme", "light")
