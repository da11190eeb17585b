"""Trainings on a simulated Vast.ai as a person lives through them at the page: begun, watched, cut off, stopped."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Page, expect

from stationmaster.model import Outcome, State
from tests.support.browser.served_station import ServedStation, served_station
from tests.support.browser.visitor import Visitor, visiting
from tests.support.jobs.local_world import write_pictures
from tests.support.waiting import until

_PATIENCE_MS = 120_000  # for what a training has to do first
_PRICED = re.compile(r"^Train for about \$[\d.]+ \(at most \$[\d.]+\)$")
_DIVERGED = {"optimizer": "sgd", "learning_rate": 16, "steps": 40, "seconds_per_step": 0.05, "save_every": 20}
_STALLED = {"steps": 4000, "seconds_per_step": 0.1, "save_every": 20, "fault": "stall", "fault_at": 40}
_HIDDEN = """
    Object.defineProperty(Document.prototype, "hidden", { get: () => true });
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => "hidden" });
"""
# A stall is seen within seconds here; by default it takes minutes.
_WATCHED = {
    "grace_period": "20m",
    "save_timeout": "1s",
    "stall_detection": {"thresholds": {"min_window": "5s", "near_end_eta": "1s", "near_end_progress": 1}},
}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures") / "cats")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStation]:
    """Where nothing was trained yet."""
    with served_station(tmp_path_factory.mktemp("journeys")) as opened:
        yield opened


@pytest.fixture(scope="module")
def station(home: ServedStation, pictures: Path) -> ServedStation:
    """With two trainings that were begun before and go on meanwhile: one stalls, one learns too fast."""
    begin(home, pictures, "stuck", _STALLED, monitoring=_WATCHED)
    home.service.until(home.service.alive, "its machine: the next one must not be promised the same")
    begin(home, pictures, "wild", _DIVERGED)
    return home


@pytest.fixture
def person(browser: Browser, home: ServedStation) -> Iterator[Visitor]:
    with visiting(browser, home.url) as opened:
        opened.sign_in(home.token)
        yield opened


def begin(station: ServedStation, pictures: Path, name: str, parameters: dict[str, object], **about: object) -> None:
    file = station.service.home.parent / f"{name}.yaml"
    file.write_text(
        yaml.safe_dump(
            {"recipe": "tiny-lora@1", "dataset": str(pictures), "name": name, "parameters": parameters, **about}
        )
    )
    done = station.service.run("train", str(file), "--id", name, "--yes")
    assert done.returncode == 0, done.stderr


def drop(person: Visitor, folder: Path) -> None:
    """Let go of a folder over the page, as from a file manager."""
    zone = person.page.get_by_text("Drop a folder with")
    zone.scroll_into_view_if_needed()
    box = zone.bounding_box()
    assert box is not None
    browser = person.context.new_cdp_session(person.page)
    for kind in ("dragEnter", "dragOver", "drop"):
        browser.send(
            "Input.dispatchDragEvent",
            {
                "type": kind,
                "x": box["x"] + box["width"] / 2,
                "y": box["y"] + box["height"] / 2,
                "data": {"items": [], "files": [str(folder)], "dragOperationsMask": 1},
            },
        )


def step_shown(page: Page) -> int:
    """The step in the header; 0 before the first."""
    text = page.locator("dt", has_text=re.compile("^Step$")).locator("+ dd").inner_text()
    return int(re.sub(r"\D", "", text.partition("/")[0]) or 0)


def step_drawn(page: Page) -> int:
    """The last step in the chart of the loss; 0 before the first."""
    cursor = page.get_by_role("slider", name="Cursor of Loss")
    return int(float(cursor.get_attribute("aria-valuemax") or 0)) if cursor.count() else 0


def step_logged(page: Page) -> int:
    """The step in the last lines of the log, as the trainer writes it."""
    found = re.findall(r"\b(\d+)/\d+ \[", page.get_by_role("log").inner_text())
    return int(found[-1]) if found else 0


def grown(read: Callable[[Page], int], page: Page, *, over: int) -> int:
    return until(lambda: found if (found := read(page)) > over else None, f"{read.__name__} over {over}")


def machines_of(station: ServedStation, job_id: str) -> list[str]:
    return [machine["label"] for machine in station.service.alive() if f"-{job_id}-" in machine["label"]]


def several_windows_go_on(person: Visitor, path: str) -> None:
    """One beside the first, and a tab in the background, whose title says how far the training is."""
    beside, behind = (Visitor(person.context, person.url) for _ in range(2))
    behind.page.add_init_script(_HIDDEN)
    for window in (beside, behind):
        window.open(path)
    expect(behind.page).to_have_title(re.compile(r"^\d+\s% · "))
    title = behind.page.title()
    for page in (beside.page, person.page):
        grown(step_drawn, page, over=step_drawn(page))
        grown(step_logged, page, over=step_logged(page))
    expect(behind.page).not_to_have_title(title)
    for window in (beside, behind):
        window.page.close()
        assert window.complaints == []


def test_a_fresh_home_offers_three_ways_to_begin(person: Visitor) -> None:
    expect(person.page.get_by_role("heading", name="No training yet")).to_be_visible()
    expect(person.page.get_by_text("stationmaster demo", exact=True)).to_be_visible()
    for way in ("New training", "Recipes"):
        expect(person.page.get_by_role("main").get_by_role("link", name=way).last).to_be_visible()
    assert person.accessibility_problems() == []


def test_from_a_dropped_folder_to_a_kept_model_though_the_server_is_killed_meanwhile(
    station: ServedStation, pictures: Path, person: Visitor
) -> None:
    page = person.page
    person.open("/new?recipe=flux-lora@2")
    cost = page.get_by_role("complementary", name="Cost")
    expect(cost).to_contain_text("✓ fits: about")
    expect(cost.get_by_role("row", name=re.compile(r"RTX.* \$\d"))).to_have_count(3)

    page.get_by_role("radio", name="Tiny LoRA on the CPU").check()
    drop(person, pictures)
    expect(page.get_by_text("✓ Ready")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("cats")
    page.get_by_label("Steps", exact=True).fill("4000")  # more than it makes before it is stopped
    page.get_by_label("Save every").fill("20")
    expect(cost.get_by_role("row", name=re.compile(r"RTX.* \$\d"))).to_have_count(3)
    page.get_by_role("button", name=_PRICED).click()
    dialog = page.get_by_role("dialog", name="Train cats?")
    expect(dialog).to_contain_text("6 pictures")
    dialog.get_by_role("button", name=_PRICED).click()
    page.wait_for_url("**/jobs/*")
    job_id = page.url.rpartition("/")[2]

    expect(page.get_by_role("heading", level=1, name="cats")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\d+\s% · cats · "), timeout=_PATIENCE_MS)
    grown(step_drawn, page, over=0)
    grown(step_shown, page, over=20)
    assert machines_of(station, job_id) != []
    assert person.accessibility_problems() == []
    assert person.complaints == []
    several_windows_go_on(person, f"/jobs/{job_id}")

    station.end(signal.SIGKILL)
    lost = page.get_by_text(re.compile(r"Connection lost, data from \d\d:\d\d\."))
    expect(lost).to_be_visible()
    expect(page.get_by_text(re.compile(r"last update \d\d:\d\d"))).to_be_visible()
    step, drawn = step_shown(page), step_drawn(page)
    assert step > 0, "what was known is still shown"
    station.begin()
    expect(page.get_by_text("● live", exact=True)).to_be_visible()
    expect(lost).to_have_count(0)
    assert all("net::ERR_" in told for told in person.complaints), person.complaints
    person.complaints.clear()  # the browser itself reports what it could not fetch
    grown(step_shown, page, over=step)
    grown(step_drawn, page, over=drawn)

    page.get_by_role("button", name="Stop and keep…").click()
    question = page.get_by_role("dialog", name="Stop cats?")
    expect(question).to_contain_text("the machine is released")
    question.get_by_role("button", name="Stop and keep the model").click()
    expect(question).to_have_count(0)
    expect(page.get_by_role("status").get_by_text("Stopped, model kept")).to_be_visible(timeout=_PATIENCE_MS)
    service = station.service
    service.until(lambda: service.job(job_id).state is State.ENDED, "the release of its machine")
    assert machines_of(station, job_id) == []
    kept = service.job(job_id)
    assert (kept.outcome, Path(kept.model.address or "").is_file()) == (Outcome.INCOMPLETE, True)


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
    expect(banner).to_contain_text(re.compile(r"It is stopped in 1\d min"))
    expect(banner).to_contain_text("The checkpoint of step 20 is kept.")
    # A bar on a busy computer is not drawn at every step, so the last one that it showed may be an earlier one.
    expect(banner.get_by_role("definition").filter(has_text=re.compile(r"^3\d$"))).to_be_visible()
    expect(page.get_by_text("Ready", exact=True).locator("+ dd")).to_have_text("–")
    expect(page.get_by_text("The training is over in about")).to_have_count(0)
    assert person.accessibility_problems() == []
    person.open("/")
    expect(page.get_by_role("button", name="Stop now: stuck")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Stalled: ")).to_contain_text(re.compile(r"resumes\)\. .* ago"))
    person.open("/jobs/stuck")
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
    assert machines_of(station, "nobody") == []
