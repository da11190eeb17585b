"""A training on a simulated Vast.ai as a person lives through it at the page: begun, watched, cut off, stopped."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stationmaster.model import Outcome, State
from tests.support.browser.served_station import ServedStation, served_station
from tests.support.browser.visitor import Visitor
from tests.support.jobs.local_world import write_pictures
from tests.support.waiting import until

_PATIENCE_MS = 120_000  # for what a training has to do first
_PRICED = re.compile(r"^Train for about \$[\d.]+ \(at most \$[\d.]+\)$")
_HIDDEN = """
    Object.defineProperty(Document.prototype, "hidden", { get: () => true });
    Object.defineProperty(Document.prototype, "visibilityState", { get: () => "hidden" });
"""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures") / "cats")


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedStation]:
    """Where nothing was trained yet."""
    with served_station(tmp_path_factory.mktemp("journeys")) as opened:
        yield opened


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
    person.open("/")
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
    assert station.service.run("jobs").returncode == 0  # `serve` leaves the work to a worker, which a command starts

    expect(page.get_by_role("heading", level=1, name="cats")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\d+\s% · cats · "), timeout=_PATIENCE_MS)
    grown(step_drawn, page, over=0)
    grown(step_shown, page, over=20)
    assert station.machines_of(job_id) != []
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
    assert station.machines_of(job_id) == []
    kept = service.job(job_id)
    assert (kept.outcome, Path(kept.model.address or "").is_file()) == (Outcome.INCOMPLETE, True)
