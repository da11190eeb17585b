"""Settings: who somebody is, the people and tokens of a server, tests of channels, checks and the audit log."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor, visiting
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import PeopledWorld

_SECTIONS = {
    "you": "You",
    "users": "Users",
    "tokens": "Tokens",
    "notifications": "Notifications",
    "doctor": "Doctor",
    "audit": "Audit",
    "about": "About",
}


def test_the_section_is_in_the_address(visitor: Visitor) -> None:
    visitor.open("/settings")
    expect(visitor.page.get_by_text("Administrator: sees and changes everything")).to_be_visible()
    visitor.page.get_by_role("link", name="Doctor").click()
    visitor.page.wait_for_url("**/settings?section=doctor")
    expect(visitor.page.get_by_role("list", name="Checks")).to_contain_text("SQLite")
    visitor.page.reload()
    expect(visitor.page.get_by_role("heading", name="Doctor")).to_be_visible()
    visitor.page.get_by_role("button", name="Check again").click()
    expect(visitor.page.get_by_role("button", name="Check again")).to_be_enabled()


def test_a_user_is_added_changed_gets_a_link_and_is_removed(
    visitor: Visitor, browser: Browser, world: PeopledWorld
) -> None:
    page = visitor.page
    visitor.open("/settings?section=users")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("Name").fill("ann")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("already exists")
    visitor.complaints.clear()  # the browser itself reports the refusal
    page.get_by_label("Name").fill("cleo")
    page.get_by_label("E-mail").fill("cleo@example.org")
    page.get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("row", name="cleo")
    expect(row).to_contain_text("e-mail")
    row.get_by_role("button", name="Actions for cleo").click()
    page.get_by_role("menuitem", name="Change").click()
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("Viewer")
    row.get_by_role("button", name="Actions for cleo").click()
    page.get_by_role("menuitem", name="Sign-in link").click()
    link = page.get_by_role("dialog").locator("code").inner_text()
    page.get_by_role("button", name="Close").click()
    with visiting(browser, world.urls[0]) as cleo:
        cleo.sign_in(link.partition("#")[2])
        expect(cleo.page.get_by_role("button", name="cleo")).to_be_visible()
    row.get_by_role("button", name="Actions for cleo").click()
    page.get_by_role("menuitem", name="Remove").click()
    expect(page.get_by_role("dialog")).to_contain_text("Their tokens stop working")
    page.get_by_role("button", name="Remove cleo").click()
    expect(page.get_by_role("dialog")).to_have_count(0)  # behind it, no row is there for assistive technology
    expect(row).to_have_count(0)
    assert "cleo" not in {one.user.name for one in world.local.users.listed()}


def test_a_token_is_created_shown_once_and_revoked(visits: Visits, world: PeopledWorld) -> None:
    with visits.of("bob") as visitor:
        page = visitor.page
        visitor.open("/settings?section=tokens")
        page.get_by_role("button", name="Create a token").click()
        page.get_by_label("What it is for").fill("laptop")
        page.get_by_label("train").uncheck()
        page.get_by_label("Expires").select_option(label="in 7 days")
        page.get_by_role("button", name="Create", exact=True).click()
        secret = page.get_by_role("dialog").locator("code").last.inner_text()
        asked = page.request.get(f"{visitor.url}/api/server", headers={"Authorization": f"Bearer {secret}"})
        assert asked.json()["caller"] == {"user": "bob", "role": "user", "rights": ["read"]}
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_text(secret)).to_have_count(0)
        row = page.get_by_role("row", name="laptop")
        expect(row).to_contain_text("in 7 d")
        expect(row).not_to_contain_text("train")
        row.get_by_role("button", name="Revoke").click()
        page.get_by_role("button", name="Revoke it").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(row).to_have_count(0)
        with_token = world.client(None).get("/api/server", headers={"Authorization": f"Bearer {secret}"})
        assert with_token.status_code == 401


def test_a_user_changes_how_messages_reach_them(visits: Visits, world: PeopledWorld) -> None:
    with visits.of("bob") as visitor:
        page = visitor.page
        visitor.open("/settings?section=you")
        page.get_by_label("Quiet hours").fill("late")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("22:00-07:00")
        visitor.complaints.clear()
        page.get_by_label("Quiet hours").fill("22:00-07:00")
        page.get_by_label("Epoch").check()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved how messages reach you")).to_be_visible()
    bob = world.local.users.find("bob")
    assert (bob.quiet, bob.muted) == ("22:00-07:00", ("epoch",))


def test_a_test_message_says_which_channels_work(visitor: Visitor) -> None:
    visitor.open("/settings?section=notifications")
    visitor.page.get_by_label("Message", exact=True).fill("does it work?")
    visitor.page.get_by_role("button", name="Send it to me").click()
    expect(visitor.page.get_by_text("✓ delivered")).to_be_visible()
    visitor.page.get_by_role("button", name="Send it to the operators").click()
    expect(visitor.page.get_by_role("heading", name="To the operators")).to_be_visible()
    visitor.go("/settings?section=audit")
    expect(visitor.page.get_by_role("region", name="Audit log")).to_contain_text("/api/inbox/test-operators")


def test_every_section_is_accessible_and_fits(visitor: Visitor) -> None:
    visitor.open("/settings")
    expect(visitor.page.get_by_text("● live")).to_be_visible()
    for section, heading in _SECTIONS.items():
        visitor.go(f"/settings?section={section}")
        expect(visitor.page.get_by_role("heading", level=2, name=heading, exact=True)).to_be_visible()
        assert problems_in_light_and_narrow(visitor) == [], section
