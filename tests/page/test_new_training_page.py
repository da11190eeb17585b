"""New training, as a person fills it in: recipe, files, price, the question, the queued job; and a job run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from stationmaster.analysis.levers import Lever
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.advice import advice, report_with
from tests.support.jobs.dataset_pictures import good_set
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld
from tests.support.jobs.stored_jobs import change_row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures with captions, one of them missing, and what a file manager leaves behind."""
    made = good_set(tmp_path / "hills", images=5)
    sorted(made.glob("*.txt"))[0].unlink()
    (made / ".DS_Store").write_bytes(b"nobody wants this")
    return made


@pytest.fixture(scope="module", autouse=True)
def no_queued_job_stays(world: PeopledWorld) -> Iterator[None]:
    """What is queued here waits for no worker, and has the name of her job: others look for that."""
    yield
    for job in world.store.jobs.listed(with_ended=False):
        change_row(world.store, job.id, state="ENDED", outcome="CANCELLED", ended_at=world.store.now())
        world.local.jobs.remove(job.id)


@pytest.fixture
def ann(visits: Visits) -> Iterator[Visitor]:
    with visits.of("ann") as opened:
        yield opened


def choose_folder(page: Page, folder: Path) -> None:
    page.get_by_label("Folder of the dataset").set_input_files(folder)


def lose_the_answer(jobs: list[str], route: Route) -> None:
    """The server queues the job, and the browser hears nothing of it."""
    jobs.append(route.fetch().json()["job"]["id"])
    route.abort()


def test_from_a_dropped_folder_to_a_queued_job_at_the_price_that_was_shown(ann: Visitor, folder: Path) -> None:
    page = ann.page
    ann.open("/new?recipe=tiny-lora@1")
    expect(page.get_by_role("radio", name="Tiny LoRA on the CPU")).to_be_checked()
    expect(page.get_by_text("Choose a dataset first.")).to_be_visible()
    page.get_by_label("Trigger", exact=True).fill("smland")
    choose_folder(page, folder)
    expect(page.get_by_role("heading", name="hills")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("hills")
    expect(page.get_by_text("1 file left out")).to_be_visible()
    expect(page.get_by_role("list", name="Pictures").get_by_role("img")).to_have_count(5)
    expect(page.get_by_text("▲ no caption", exact=True)).to_have_count(1)
    expect(page.locator("mark", has_text="smland").first).to_be_visible()
    expect(page.get_by_text("Can be trained on")).to_be_visible()
    expect(page.get_by_role("button", name="Train for free")).to_be_enabled()
    assert problems_in_light_and_narrow(ann) == []

    page.get_by_label("Steps", exact=True).fill("0")
    expect(page.get_by_text("Use a whole number from 1 to 1,000,000.")).to_be_visible()
    expect(page.get_by_text("1 field is not valid yet.")).to_be_visible()
    page.get_by_label("Steps", exact=True).fill("40")
    page.get_by_role("button", name="Train for free").click()
    dialog = page.get_by_role("dialog", name="Train hills?")
    expect(dialog).to_contain_text("tiny-lora@1")
    expect(dialog).to_contain_text("5 pictures")
    expect(dialog).to_contain_text("loopback")
    with page.expect_response("**/api/proposals/*/submit") as answered:
        dialog.get_by_role("button", name="Train for free").click()
    job = answered.value.json()["job"]
    assert (job["parameters"]["steps"], job["trigger"], job["dataset"]["images"]) == (40, "smland", 5)
    page.wait_for_url(f"**/jobs/{job['id']}")
    ann.open("/new?recipe=tiny-lora@1")  # others need more disk than every computer has
    expect(page.get_by_label("Name", exact=True)).to_have_value("")


def test_what_was_typed_survives_a_reload_and_files_go_on_where_they_stopped(ann: Visitor, folder: Path) -> None:
    page = ann.page
    with sorted(folder.glob("*.png"))[0].open("ab") as first:
        first.write(bytes(100_000))  # small files are sent again
    ann.open("/new?recipe=tiny-lora@1")
    page.get_by_label("Rank").fill("5")
    page.get_by_label("Name", exact=True).fill("kept")
    arrived: list[str] = []

    def three_only(route: Route) -> None:
        arrived.append(route.request.url)
        if len(arrived) <= 3:
            route.continue_()
        else:
            route.abort()

    page.route("**/api/datasets/*/files/*", three_only)
    choose_folder(page, folder)
    expect(page.get_by_text("The server does not answer. The upload continues")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Rank")).to_have_value("5")
    expect(page.get_by_label("Name", exact=True)).to_have_value("kept")
    expect(page.get_by_text("of 9 files have begun to arrive")).to_be_visible()
    page.unroute("**/api/datasets/*/files/*")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    choose_folder(page, folder)
    expect(page.get_by_text("Everything has arrived.")).to_be_visible()
    assert len(sent) == 8
    assert not any(url.endswith("landscape_001.png") for url in sent)
    ann.complaints.clear()  # the browser itself reports what was cut


def test_an_expired_price_is_said_and_asked_for_anew(ann: Visitor, world: PeopledWorld, folder: Path) -> None:
    page = ann.page
    ann.open("/new?recipe=tiny-lora@1")
    choose_folder(page, folder)
    with page.expect_response("**/api/proposals") as answered:
        page.get_by_role("button", name="Train for free").click()
    world.client("ann").delete(f"/api/proposals/{answered.value.json()['id']}")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Train for free").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no longer valid")
    dialog.get_by_role("button", name="Ask for the price again").click()
    expect(dialog.get_by_text("The price is still about $0.00.")).to_be_visible()
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)
    ann.complaints.clear()  # the browser itself reports the refusal


def test_a_refusal_of_the_server_is_shown_at_its_field(ann: Visitor) -> None:
    page = ann.page
    ann.open("/new?recipe=tiny-lora@1&dataset=s3://pictures/cats")
    page.get_by_role("button", name="Train for free").click()
    expect(page.get_by_label("Or an address")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_contain_text("only administrators may train on s3://pictures/cats")
    ann.complaints.clear()


def test_a_job_is_run_again_as_its_analysis_recommends_with_the_differences_marked(
    ann: Visitor, world: PeopledWorld
) -> None:
    report = report_with(advice(Lever.LEARNING_RATE, 0.005, title="The learning rate is too high"))
    assert world.store.analyses.put(ANNS_JOB, 1, report)
    page = ann.page
    ann.open(f"/new?retry={ANNS_JOB}&apply=all")
    differences = page.get_by_role("region", name="Differences")
    expect(differences).to_contain_text("1 setting")
    expect(differences.get_by_role("row", name="Learning rate")).to_contain_text("The learning rate is too high")
    rate = page.get_by_label("Learning rate")
    expect(rate).to_have_value("0.005")
    expect(page.locator("label", has_text="Learning rate")).to_contain_text("0.01 → 0.005")
    page.get_by_label("Rank").fill("3")
    expect(differences.get_by_role("row", name="Rank")).to_contain_text("your change")
    page.get_by_role("button", name="Train for free").click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Train for free")
    lost: list[str] = []
    page.route("**/api/proposals/*/submit", partial(lose_the_answer, lost), times=1)
    confirm.click()
    expect(page.get_by_text("The answer was lost, so the training may be queued already")).to_be_visible()
    with page.expect_response("**/api/proposals/*/submit") as answered:
        confirm.click()
    job = answered.value.json()["job"]
    assert lost == [job["id"]], "the second request found the job of the first one"
    ann.complaints.clear()
    assert (job["retry_of"], job["parameters"]["rank"], job["parameters"]["learning_rate"]) == (ANNS_JOB, 3, 0.005)
    assert [one["what"] for one in job["applied"]] == ["learning_rate"]


def test_no_machine_that_fits_is_a_state_of_its_own(ann: Visitor) -> None:
    """The answers are those of a market, which this computer as its own machine does not have."""
    page = ann.page
    refusal = {"type": "urn:stationmaster:problem:NoOfferFits", "title": "", "status": 400}
    page.route(
        "**/api/estimates",
        lambda route: route.fulfill(
            status=400, body=json.dumps({**refusal, "detail": "no offer of vastai fits flux-lora@2", "hint": None})
        ),
    )
    left = {"why": "above the cap", "count": 12, "from_price_per_hour_usd": 0.467, "too_dear": True}
    page.route(
        "**/api/offers?*",
        lambda route: route.fulfill(json={"offers": [], "left_out": [], "left_out_by_reason": [left]}),
    )
    ann.open("/new?recipe=flux-lora@2")
    page.get_by_label("Highest price per hour").fill("0.40")
    expect(page.get_by_text("No machine fits now")).to_be_visible()
    page.get_by_role("button", name="Raise the limit to $0.47/h").click()
    expect(page.get_by_label("Highest price per hour")).to_have_value("0.47")
    ann.complaints.clear()


def test_whoever_may_only_look_is_told_so(visits: Visits) -> None:
    with visits.of("reader") as viewer:
        viewer.open("/new")
        expect(viewer.page.get_by_role("heading", name="You may look, but not train")).to_be_visible()
