"""What an administrator, a user and a viewer see and may do; and a session that ends while the page is open."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from stationmaster.station.tokens import NewToken
from tests.support.browser.visitor import Visitor, visiting
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import PeopledWorld

_SECTIONS = {
    "administrator": ["You", "Users", "Tokens", "Notifications", "Doctor", "Audit", "About"],
    "ann": ["You", "Tokens", "Notifications", "Audit", "About"],
    "viewer": ["You", "Tokens", "Audit", "About"],
}


@pytest.mark.parametrize("who", _SECTIONS)
def test_what_somebody_may_not_see_is_not_offered(visits: Visits, who: str) -> None:
    with visits.of(who) as visitor:
        page = visitor.page
        visitor.open("/settings")
        links = page.get_by_role("navigation", name="Sections of the settings").get_by_role("link")
        expect(links).to_have_text(_SECTIONS[who])
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Search").fill("new training")
        may_train = who != "viewer"
        expect(page.get_by_role("option", name="New training")).to_have_count(1 if may_train else 0)
        page.get_by_role("combobox", name="Search").fill("doctor")
        expect(page.get_by_role("option", name="Doctor")).to_have_count(1 if who == "administrator" else 0)
        page.keyboard.press("Escape")
        visitor.go("/settings?section=tokens")
        expect(page.get_by_role("heading", name="Tokens")).to_be_visible()
        expect(page.get_by_role("button", name="Create a token")).to_have_count(1 if may_train else 0)


def test_a_direct_link_to_what_is_not_for_somebody_says_so(visits: Visits) -> None:
    with visits.of("viewer") as visitor:
        visitor.open("/settings?section=doctor")
        expect(visitor.page.get_by_role("heading", name="Doctor: not for you")).to_be_visible()
        expect(visitor.page.get_by_text("Only administrators see this")).to_be_visible()
        assert visitor.accessibility_problems() == []
        visitor.go("/settings?section=notifications")
        expect(visitor.page.get_by_text("this needs the right “train”")).to_be_visible()
        visitor.go("/settings?section=you")
        expect(visitor.page.get_by_text("A viewer cannot change these")).to_be_visible()
        expect(visitor.page.get_by_label("E-mail")).to_be_disabled()
        expect(visitor.page.get_by_role("button", name="Save")).to_have_count(0)


def test_the_training_of_somebody_else_is_not_found(visits: Visits) -> None:
    for who, found in (("administrator", True), ("ann", True), ("bob", False), ("viewer", False)):
        with visits.of(who) as visitor:
            visitor.open("/jobs/annsjob")
            if found:
                expect(visitor.page.get_by_role("heading", name="anns cats")).to_be_visible()
            else:
                expect(visitor.page.get_by_text("There is no training annsjob")).to_be_visible()
                expect(visitor.page.get_by_text("anns cats")).to_have_count(0)
                visitor.page.keyboard.press("Control+k")
                visitor.page.get_by_role("combobox", name="Search").fill("annsjob")
                expect(visitor.page.get_by_text("Nothing matches")).to_be_visible()
            visitor.complaints.clear()  # the browser itself reports what was not found


def _sign_in_for_a_while(visitor: Visitor, world: PeopledWorld) -> str:
    created = world.local.tokens.create(NewToken(name="for a while", user="bob"))
    visitor.sign_in(created.secret)
    return created.token.id


def test_a_session_that_ends_asks_for_a_sign_in_and_loses_nothing(browser: Browser, world: PeopledWorld) -> None:
    with visiting(browser, world.urls[0]) as visitor:
        page = visitor.page
        token = _sign_in_for_a_while(visitor, world)
        visitor.open("/settings?section=notifications")
        page.get_by_label("Message", exact=True).fill("half a sentence")
        world.local.tokens.revoke(token)
        page.get_by_role("button", name="Send it to me").click()
        ended = page.get_by_role("dialog", name="Your session has ended")
        expect(ended).to_be_visible()
        assert visitor.accessibility_problems() == []
        ended.get_by_label("Token").fill("not a token")
        ended.get_by_role("button", name="Sign in").click()
        expect(ended.get_by_role("alert")).to_contain_text("unknown, has expired or was revoked")
        ended.get_by_label("Token").fill(world.tokens["bob"])
        ended.get_by_role("button", name="Sign in").click()
        expect(ended).to_have_count(0)
        expect(page.get_by_label("Message", exact=True)).to_have_value("half a sentence")
        page.get_by_role("button", name="Send it to me").click()
        expect(page.get_by_text("✓ delivered")).to_be_visible()
        visitor.complaints.clear()


def test_whoever_signs_in_as_somebody_else_sees_nothing_of_before(browser: Browser, world: PeopledWorld) -> None:
    with visiting(browser, world.urls[0]) as visitor:
        page = visitor.page
        token = _sign_in_for_a_while(visitor, world)
        visitor.open("/settings?section=tokens")
        expect(page.get_by_role("row", name="for a while")).to_be_visible()
        world.local.tokens.revoke(token)
        page.get_by_role("link", name="Audit").click()
        ended = page.get_by_role("dialog", name="Your session has ended")
        ended.get_by_label("Token").fill(world.tokens["viewer"])
        ended.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{visitor.url}/")
        expect(page.get_by_role("button", name="vera")).to_be_visible()
        visitor.complaints.clear()
