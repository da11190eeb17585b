"""Money: what is spent, on what, the limits, and credits where they are on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, expect

from stationmaster.money import MicroDollars
from stationmaster.station.credits import Grant
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import cost_of, put_trained


@pytest.fixture(scope="module")
def rich(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    """A server with credits, a daily limit, and a machine that has run for an hour."""
    limits = {"STATIONMASTER_BILLING__ENABLED": "1", "STATIONMASTER_LIMITS__DAILY_SPEND": "2"}
    with HttpWorld(tmp_path_factory.mktemp("rich"), **limits) as world:
        local, now = world.local, world.store.now()
        local.users.add("ann", UserChanges(inbox=True))
        for user, micros in (("me", 25_000_000), ("ann", 3_000_000)):
            local.credits.grant(Grant(user=user, amount=MicroDollars(micros), reason="welcome", actor="me"))
        put_trained(world.store, "old1", name="portraits", owner="ann")
        world.store.jobs.submit(spec("runs1", name="now training"))
        world.store.costs.put_without_lease(cost_of("runs1", started_at=now - 3600))
        yield world


@pytest.fixture(scope="module")
def rich_visits(browser: Browser, rich: HttpWorld) -> Iterator[Visits]:
    create = rich.local.tokens.create
    tokens = {user: create(NewToken(name="page", user=user)).secret for user in ("me", "ann")}
    with closing(Visits(browser, rich.urls[0], tokens)) as visits:
        yield visits


@pytest.fixture
def owner(rich_visits: Visits) -> Iterator[Visitor]:
    with rich_visits.of("me") as visitor:
        visitor.open("/money")
        yield visitor


def test_spending_is_shown_now_today_in_total_and_over_time(owner: Visitor) -> None:
    page = owner.page
    figures = page.locator("dl").first
    expect(figures).to_contain_text(re.compile(r"Now\s*\$0\.36/h"))
    expect(figures).to_contain_text(re.compile(r"In total\s*\$0\.72"))
    expect(page.get_by_role("region", name="Budget")).to_contain_text("$0.36 of $2.00 in the last 24 hours")
    expect(page.get_by_role("row", name="portraits")).to_be_visible()
    expect(page.get_by_role("region", name="Credits", exact=True)).to_be_visible()
    assert problems_in_light_and_narrow(owner) == []
    page.get_by_label("2 days").check()
    page.wait_for_url("**range=2d**")
    page.get_by_text("As a table").click()
    expect(page.get_by_role("region", name="Costs over time")).to_contain_text("$0.")


def test_spending_is_summed_up_by_training_recipe_and_user(owner: Visitor) -> None:
    page = owner.page
    table = page.get_by_role("region", name="What the money went to")
    expect(table.get_by_role("row", name="portraits")).to_contain_text("50 %")
    page.get_by_label("User", exact=True).check()
    expect(table.get_by_role("row", name="ann")).to_contain_text("$0.36")
    page.get_by_label("Recipe", exact=True).check()
    expect(table.get_by_role("row", name="tiny-lora@1")).to_contain_text("$0.72")
    page.wait_for_url("**by=recipe**")


def test_credits_are_given_after_a_question_and_add_up(owner: Visitor, rich: HttpWorld) -> None:
    page = owner.page
    page.get_by_label("Account").select_option("ann")
    credits = page.get_by_role("region", name="Credits", exact=True)
    expect(credits).to_contain_text("$3.00 to spend")
    page.get_by_role("button", name="Give or correct credits").click()
    page.get_by_label("Amount in dollars").fill("-1")
    page.get_by_label("Reason").fill("for the pictures")
    expect(page.get_by_text("Enter an amount above zero")).to_be_visible()
    page.get_by_label("Amount in dollars").fill("1.50")
    page.get_by_label("Expires in days").fill("30")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("dialog", name="Give $1.50 to ann?")).to_contain_text("for the pictures")
    assert rich.local.credits.account("ann").balance == 3_000_000, "nothing moves before the answer"
    page.get_by_role("button", name="Give $1.50").click()
    expect(credits).to_contain_text("$4.50 to spend")
    expect(page.get_by_role("region", name="Statement of ann")).to_contain_text("for the pictures")
    expect(page.get_by_role("region", name="Credits by when they expire")).to_contain_text("in 30 d")
    page.get_by_role("button", name="Check the ledger").click()
    expect(page.get_by_text("add up to $29.50")).to_be_visible()
    page.get_by_role("button", name="Refund a training").click()
    page.get_by_role("button", name="Refund all").click()
    expect(page.get_by_text("Required").first).to_be_visible()
    page.get_by_label("Training", exact=True).last.fill("old1")
    page.get_by_label("Reason").fill("it was our fault")
    page.get_by_role("button", name="Refund all").click()
    expect(page.get_by_role("alert")).to_be_visible()
    owner.complaints.clear()  # nothing was charged for it, and the browser itself reports the refusal


def test_a_long_statement_begins_with_the_newest_entry(owner: Visitor, rich: HttpWorld) -> None:
    for place in range(60):
        rich.local.credits.grant(Grant(user="ann", amount=MicroDollars(1), reason=f"gift {place}.", actor="me"))
    owner.page.get_by_label("Account").select_option("ann")
    statement = owner.page.get_by_role("region", name="Statement of ann")
    expect(statement.get_by_role("row").nth(1)).to_contain_text("gift 59.")
    expect(statement).not_to_contain_text("welcome")
    owner.page.get_by_role("button", name="Older entries").click()
    expect(statement.get_by_role("row").last).to_contain_text("welcome")


def test_a_user_sees_only_their_own_money(rich_visits: Visits, visits: Visits) -> None:
    with rich_visits.of("ann") as visitor:
        visitor.open("/money")
        page = visitor.page
        expect(page.get_by_text("Of your own trainings")).to_be_visible()
        expect(page.get_by_role("row", name="portraits")).to_be_visible()
        expect(page.get_by_text("now training")).to_have_count(0)
        expect(page.get_by_role("button", name="Give or correct credits")).to_have_count(0)
        expect(page.get_by_label("Account")).to_have_count(0)
    with visits.of("viewer") as viewer:
        viewer.open("/money")
        expect(viewer.page.get_by_role("heading", name="Nothing spent yet")).to_be_visible()
        expect(viewer.page.get_by_text("No daily limit is set")).to_be_visible()
        expect(viewer.page.get_by_role("heading", name="Credits")).to_have_count(0)
