"""Trainings on a simulated Vast.ai that go wrong, at the page: too fast, stalled; and a machine that is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import expect

from stationmaster.model import Outcome
from tests.support.browser.served_station import ServedStation, served_station
from tests.support.browser.visitor import Visitor
from tests.support.jobs.local_world import write_pictures

_PATIENCE_MS = 120_000  # for what a training has to do first
_PRICED = re.compile(r"^Train for about \$[\d.]+ \(at most \$[\d.]+\)$")
_DIVERGED = {"optimizer": "sgd", "learning_rate": 16, "steps": 40, "seconds_per_step": 0.05, "save_every": 20}
_STALLED = {"steps": 4000, "seconds_per_step": 0.1, "save_every": 20, "fault": "stall", "fault_at": 40}
# A stall is seen within seconds here; by default it takes minutes.
_WATCHED = {
    "grace_period": "20m",
    "save_timeout": "1s",
    "stall_detection": {"thresholds": {"min_window": "5s", "near_end_eta": "1s", "near_end_progress": 1}},
}


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStation]:
    """With two trainings that were begun before and go on meanwhile: one stalls, one learns too fast."""
    pictures: Path = write_pictures(tmp_path_factory.mktemp("pictures") / "cats")
    with served_station(tmp_path_factory.mktemp("troubled")) as opened:
        opened.train(pictures, "stuck", _STALLED, monitoring=_WATCHED)
        opened.service.until(opened.service.alive, "its machine: the next one must not be promised the same")
        opened.train(pictures, "wild", _DIVERGED)
        yield opened


def test_a_training_that_learned_too_fast_ends_and_its_recommended_settings_become_a_new_one(
    station: ServedStation, person: Visitor
) -> None:
    page = person.page
    person.open("/jobs/wild?tab=analysis")
    advice = page.get_by_role("listitem").filter(has_text="the learning rate is too high").first
    expect(advice).to_be_visible(timeout=_PATIENCE_MS)
    expect(page.get_by_role("status").get_by_text("Completed")).to_be_visible(timeout=_PATIENCE_MS)
    expect(page.get_by_role("complementary", name="What to know")).to_contain_text("for 40 steps")
    page.get_by_role("button", name="Apply recommended settings").click()
    page.get_by_role("button", name="Open the form with 1 change").click()
    differences = page.get_by_role("region", name="Differences")
    expect(differences.get_by_role("row", name="Learning rate 16")).to_contain_text("→ 1.6")
    expect(page.get_by_role("textbox", name="Learning rate 16 → 1.6")).to_have_value("1.6")
    page.get_by_label("Steps", exact=False).first.fill("4000")
    expect(differences.get_by_role("row", name="Steps 40")).to_contain_text("your change")
    page.get_by_role("button", name=_PRICED).click()
    with page.expect_response("**/api/proposals/*/submit") as answered:
        page.get_by_role("dialog").get_by_role("button", name=_PRICED).click()
    job = answered.value.json()["job"]
    assert (job["retry_of"], job["parameters"]["learning_rate"], job["parameters"]["steps"]) == ("wild", 1.6, 4000)
    page.wait_for_url(f"**/jobs/{job['id']}")
    expect(page.get_by_text("with 1 recommendation applied")).to_be_visible()
    done = station.service.run("stop", job["id"])
    assert done.returncode == 0, done.stderr


def test_a_stall_is_told_with_its_numbers_and_is_stopped_at_once(station: ServedStation, person: Visitor) -> None:
    page = person.page
    person.open("/jobs/stuck")
    banner = page.get_by_role("alert", name="Stalled")
    expect(banner).to_contain_text(re.compile(r"Stalled since \d\d:\d\d"), timeout=_PATIENCE_MS)
    expect(banner).to_contain_text(re.compile(r"It is stopped in (1\d|20) min"))
    expect(banner).to_contain_text("The checkpoint of step 20 is kept.")
    # A bar on a busy computer is not drawn at every step, so the last one that it showed may be an earlier one.
    expect(banner.get_by_role("definition").filter(has_text=re.compile(r"^3\d$"))).to_be_visible()
    expect(page.get_by_text("Ready", exact=True).locator("+ dd")).to_have_text("–")
    expect(page.get_by_text("The training is over in about")).to_have_count(0)
    assert person.accessibility_problems() == []
    person.go("/")
    expect(page.get_by_role("button", name="Stop now: stuck")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Stalled: ")).to_contain_text(re.compile(r"resumes\)\. .* ago"))
    person.go("/jobs/stuck")
    banner.get_by_role("button", name="Stop now…").click()
    page.get_by_role("dialog", name="Stop stuck?").get_by_role("button", name="Stop and keep the model").click()
    expect(page.get_by_role("status").get_by_text("Stopped, model kept")).to_be_visible(timeout=_PATIENCE_MS)
    expect(banner).to_have_count(0)
    assert station.service.job("stuck").outcome is Outcome.INCOMPLETE


def test_a_machine_that_no_training_explains_is_told_in_red_and_ended(station: ServedStation, person: Visitor) -> None:
    page = person.page
    with closing(station.service.customer()) as customer:
        leak = customer.rent_running(label=f"sm-{station.service.store.installation_id}-nobody-1")["id"]
    person.open("/")
    told = page.get_by_role("list", name="Machines without a training")
    expect(told).to_contain_text(f"Instance {leak} has billed for")
    assert person.accessibility_problems() == []
    told.get_by_role("button", name=f"End it: instance {leak}").click()
    page.get_by_role("dialog", name=f"End instance {leak}?").get_by_role("button", name="End it").click()
    expect(page.get_by_text(f"Ending instance {leak}")).to_be_visible()
    expect(told).to_have_count(0)
    assert station.machines_of("nobody") == []
