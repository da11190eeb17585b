"""The list of trainings: what needs a person comes first; filters, groups, keys, and the money in the frame."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from stationmaster.model import Alert, Progress, StepReading
from stationmaster.store import readings
from stationmaster.store.codec import progress_to_text
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.peopled_world import PeopledWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import change_row, cost_of, machine_of, put_trained

STALL = "stalled: no step for 12 min, usually one every 2 s (will be stopped in 3 min unless progress resumes)"


def put_running(world: HttpWorld, job_id: str, *, step: int, **fields: object) -> None:
    store, now = world.store, world.store.now()
    store.jobs.submit(spec(job_id, name=job_id, **fields))
    progress = Progress(step=step, total_steps=1000, loss=0.084, steps_per_second=7.4, eta_seconds=2460.0, at=now)
    vitals = {"gpus": [[[now, 97.0, 18432, 24576]]]}
    change_row(
        store, job_id, state="EXECUTING", attempt=1, due_at=None, progress=progress_to_text(progress),
        memory=json.dumps({"vitals": vitals}),
    )  # fmt: skip
    store.rentals.put_without_lease(machine_of(job_id, held_at=now - 3600))
    store.costs.put_without_lease(cost_of(job_id, started_at=now - 3600))
    losses = [StepReading(attempt=1, at=now, step=each, loss=1.0 / (each + 1)) for each in range(0, step, 10)]
    with store.database.write() as connection:
        readings.append(connection, readings.rows(job_id, losses))


@pytest.fixture(scope="module")
def fleet(world: PeopledWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeopledWorld]:
    """Trainings in several states beside the finished one; taken away again, since others share the world."""
    put_running(world, "cats-v3", step=620, owner="bob")
    put_running(world, "hero-lora", step=100, recipe="flux-lora@1")
    world.store.alerts.raise_without_lease(Alert(kind="stall", message=STALL, job_id="hero-lora"))
    put_trained(world.store, "cats-v2", name="cats-v2", owner="bob")
    yield world
    now = world.store.now()
    for job_id in ("cats-v3", "hero-lora"):
        change_row(world.store, job_id, state="ENDED", outcome="CANCELLED", ended_at=now)
        world.store.rentals.put_without_lease(machine_of(job_id, state="GONE", gone_at=now))
        world.store.costs.put_without_lease(cost_of(job_id, started_at=now - 3600, ended_at=now))
    for job_id in ("cats-v3", "hero-lora", "cats-v2"):
        world.local.jobs.remove(job_id)


@pytest.fixture
def visitor(visits: Visits, fleet: PeopledWorld) -> Iterator[Visitor]:
    with visits.of("administrator") as opened:
        opened.open("/")
        yield opened


def test_a_line_shows_a_training_and_what_needs_a_person_comes_first(visitor: Visitor) -> None:
    table = visitor.page.get_by_role("table", name="Trainings")
    rows = table.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("hero-lora")
    expect(rows.nth(2)).to_contain_text("Stalled: no step for 12 min")
    line = table.get_by_role("row", name="cats-v3")
    for text in ("Training", "62 %", "0.084", "RTX 4090", "97 %", "41 min", "$0.36/h", "$0.36"):
        expect(line).to_contain_text(text)
    expect(line.locator("svg path")).to_have_count(1)
    expect(visitor.page.get_by_role("link", name="Money:")).to_contain_text("$0.72/h now")
    expect(visitor.page).to_have_title("2 running · Trainings · Stationmaster")
    assert problems_in_light_and_narrow(visitor) == []


def test_stopping_asks_first(visitor: Visitor) -> None:
    visitor.page.get_by_role("button", name="Stop now: hero-lora").click()
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its best checkpoint is downloaded")
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)


def test_filters_and_groups_are_in_the_address(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_label("Filter trainings").fill("cats")
    table = page.get_by_role("table", name="Trainings")
    expect(table.get_by_role("link", name="hero-lora")).to_have_count(0)
    page.get_by_label("Groups").select_option("owner")
    page.get_by_role("button", name="bob").click()
    expect(table.get_by_role("link", name="cats-v3")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="bob")).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("button", name="ann")).to_be_visible()
    page.get_by_role("button", name="bob").click()
    expect(table.get_by_role("link", name="cats-v3")).to_be_visible()


def test_keys_move_select_compare_and_open(visitor: Visitor) -> None:
    page = visitor.page
    expect(page.get_by_role("link", name="hero-lora")).to_be_visible()
    for key in ("j", "x", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_text("2 trainings selected")).to_be_visible()
    page.keyboard.press("c")
    page.wait_for_url("**/compare?jobs=*&jobs=*")
    visitor.open("/")
    expect(page.get_by_role("link", name="hero-lora")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="hero-lora")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/hero-lora")


def test_columns_are_chosen_and_remembered(visitor: Visitor) -> None:
    page = visitor.page
    heading = page.get_by_role("columnheader", name="Recipe")
    expect(page.get_by_role("columnheader", name="Loss")).to_be_visible()
    expect(heading).to_have_count(0)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Recipe").click()
    expect(heading).to_be_visible()
    page.reload()
    expect(heading).to_be_visible()


def test_somebody_sees_only_their_own_trainings_and_no_one_else_s_money(visits: Visits, fleet: PeopledWorld) -> None:
    with visits.of("bob") as visitor:
        visitor.open("/")
        expect(visitor.page.get_by_role("link", name="cats-v3")).to_be_visible()
        expect(visitor.page.get_by_role("link", name="hero-lora")).to_have_count(0)
        expect(visitor.page.get_by_role("link", name="Money:")).to_contain_text("$0.36/h now")
        expect(visitor.page).to_have_title("62 % · Trainings · Stationmaster")
        icon = visitor.page.locator('link[rel="icon"]')
        assert (icon.get_attribute("href") or "").startswith("data:image/svg+xml")
