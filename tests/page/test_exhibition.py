"""The made-up trainings of the pictures: every view opens on them, says nothing in the console and is accessible."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import Browser, expect

from scripts.make_screenshots import NARROW, SHOTS
from tests.support.browser.exhibition import Exhibition, exhibition
from tests.support.browser.looks import TAB_PANEL, problems_in_dark
from tests.support.browser.visits import Visits

#: The views by address, each with the beginning of its title, without how many trainings run.
_VIEWS = {
    "/": "Trainings",
    "/jobs/hills-v3-4c1e": "hills-v3",
    "/new?retry=portraits-b601&apply=all": "Train again",
    "/compare?jobs=hills-v3-4c1e&jobs=hills-v2-91ab&jobs=hills-v1-3d7f": "Compare",
    "/machines": "Machines",
    "/models": "Models",
    "/datasets": "Datasets",
    "/money": "Money",
    "/inbox": "Inbox",
    "/recipes": "Recipes",
    "/recipes/tiny-lora@1": "Tiny LoRA on the CPU",
    "/jobs/poster-style-77d0": "poster-style",
    "/jobs/portraits-b601": "portraits",
    **{
        f"/settings?section={name.lower()}": f"{name} · Settings"
        for name in ("You", "Users", "Tokens", "Notifications", "Doctor", "Audit", "About")
    },
}
_TABS = ("Log", "Events", "Checkpoints", "Cost", "Plan", "Analysis")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exhibition]:
    with exhibition(tmp_path_factory.mktemp("exhibition")) as opened:
        yield opened


def test_every_view_opens_without_a_complaint_and_is_accessible_in_dark_colours(
    browser: Browser, shown: Exhibition
) -> None:
    """Light colours and narrow screens are those of each view's own tests."""
    found: dict[str, list[str]] = {}
    with closing(Visits(browser, shown.url, {"me": shown.token})) as visits, visits.of("me") as visitor:
        page = visitor.page
        visitor.open("/")
        for path, title in _VIEWS.items():
            visitor.go(path)
            expect(page).to_have_title(re.compile(rf"^([^·]+ · )?{title} · "))
            expect(page.get_by_role("heading", level=1)).to_have_count(1)
            found[path] = problems_in_dark(visitor)
        visitor.go("/jobs/hills-v2-91ab")
        for name in _TABS:
            page.get_by_role("tab", name=name).click()
            expect(page.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
            found[name] = problems_in_dark(visitor, within=TAB_PANEL)
    assert {view: problems for view, problems in found.items() if problems} == {}


def test_every_picture_is_of_a_view_that_is_opened_here() -> None:
    opened = {*_VIEWS, "/jobs/hills-v2-91ab?tab=analysis#about"}
    assert {shot.path for shot in (*SHOTS, *NARROW)} <= opened


def test_the_exhibition_has_what_the_pictures_are_to_show(shown: Exhibition) -> None:
    with httpx.Client(
        base_url=shown.url, headers={"Authorization": f"Bearer {shown.token}"}, timeout=60, verify=False
    ) as client:
        jobs = {job["name"]: job for job in client.get("/api/jobs?ended=true").json()["items"]}
        machines = client.get("/api/instances").json()["machines"]
        advice = client.get("/api/jobs/hills-v2-91ab/analysis").json()["recommendations"]
    assert {job["shown"] for job in jobs.values()} >= {"EXECUTING", "COMPLETED", "FAILED", "INCOMPLETE", "PROVISIONING"}
    assert [alert["kind"] for alert in jobs["poster-style"]["alerts"]] == ["stall"]
    assert [machine["act"] for machine in machines if machine["job"] is None] == ["alert"]
    assert [each["rule"] for each in advice] == ["memory_batch", "sampling_time"]
