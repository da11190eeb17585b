"""The made-up trainings of the pictures: every view opens on them, says nothing in the console and is accessible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from playwright.sync_api import Browser, expect

from scripts.make_screenshots import NARROW, SHOTS
from tests.support.browser.exhibition import Exhibition, exhibition
from tests.support.browser.looks import problems_in_both_colours
from tests.support.browser.visits import Visits

_OTHERS = (
    "/machines",
    "/models",
    "/datasets",
    "/money",
    "/jobs/poster-style-77d0",
    "/jobs/portraits-b601",
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exhibition]:
    with exhibition(tmp_path_factory.mktemp("exhibition")) as opened:
        yield opened


def test_every_view_opens_without_a_complaint_and_is_accessible(browser: Browser, shown: Exhibition) -> None:
    found: dict[str, list[str]] = {}
    paths = list(dict.fromkeys([*(shot.path for shot in (*SHOTS, *NARROW)), *_OTHERS]))
    with closing(Visits(browser, shown.url, {"me": shown.token})) as visits, visits.of("me") as visitor:
        for path in paths:
            visitor.open(path)
            expect(visitor.page.get_by_role("heading", level=1)).to_have_count(1)
            if problems := problems_in_both_colours(visitor):
                found[path] = problems
    assert found == {}


def test_the_exhibition_has_what_the_pictures_are_to_show(shown: Exhibition) -> None:
    with httpx.Client(base_url=shown.url, headers={"Authorization": f"Bearer {shown.token}"}, timeout=60) as client:
        jobs = {job["name"]: job for job in client.get("/api/jobs?ended=true").json()["items"]}
        machines = client.get("/api/instances").json()["machines"]
        advice = client.get("/api/jobs/hills-v2-91ab/analysis").json()["recommendations"]
    assert {job["shown"] for job in jobs.values()} >= {"EXECUTING", "COMPLETED", "FAILED", "INCOMPLETE", "PROVISIONING"}
    assert [alert["kind"] for alert in jobs["poster-style"]["alerts"]] == ["stall"]
    assert [machine["act"] for machine in machines if machine["job"] is None] == ["alert"]
    assert [each["rule"] for each in advice] == ["memory_batch", "sampling_time"]
