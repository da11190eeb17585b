"""The views of trained models: found, read, downloaded, published."""

from __future__ import annotations

import hashlib
from pathlib import Path

from playwright.sync_api import expect

from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld


def test_a_model_is_found_and_tells_how_it_was_trained(visitor: Visitor, world: PeopledWorld) -> None:
    page, model = visitor.page, world.local.models.find(ANNS_JOB)
    visitor.open("/models")
    expect(page.get_by_role("row", name="anns cats")).to_be_visible()
    assert problems_in_light_and_narrow(visitor) == []
    page.get_by_label("Search").fill("no such model")
    expect(page.get_by_text("No model matches")).to_be_visible()
    page.get_by_role("button", name="Show all models").click()
    page.get_by_label("Search").fill("anns")
    row = page.get_by_role("row", name="anns cats")
    expect(row.get_by_text("Here")).to_be_visible()
    assert "q=anns" in page.url
    row.get_by_role("link", name="anns cats").click()
    expect(page.get_by_role("heading", level=1, name="anns cats")).to_be_visible()
    expect(page.get_by_text(model.sha256)).to_be_visible()
    expect(page.get_by_role("img").first).to_be_visible()
    expect(page.get_by_role("link", name="Train again")).to_have_attribute("href", f"/new?retry={ANNS_JOB}")
    expect(page.get_by_role("link", name="Open its training")).to_have_attribute("href", f"/jobs/{ANNS_JOB}")
    assert problems_in_light_and_narrow(visitor) == []


def test_the_weights_are_downloaded_whole(visitor: Visitor, world: PeopledWorld, tmp_path: Path) -> None:
    model = world.local.models.find(ANNS_JOB)
    visitor.open(f"/models/{model.slug}")
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "weights")
    assert download.value.suggested_filename == model.file_name
    assert hashlib.sha256((tmp_path / "weights").read_bytes()).hexdigest() == model.sha256


def test_publishing_asks_first_and_an_error_is_told_with_its_hint(visitor: Visitor, world: PeopledWorld) -> None:
    page, model = visitor.page, world.local.models.find(ANNS_JOB)
    visitor.open(f"/models/{model.slug}")
    page.get_by_role("button", name="Publish to the Hub").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("the Hub keeps them until you delete them there")
    dialog.get_by_role("button", name="Publish").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    assert all("400" in each or "409" in each for each in visitor.complaints), "the browser reports the refusal"
    visitor.complaints.clear()


def test_who_may_not_train_is_not_offered_to_publish(visits: Visits, world: PeopledWorld) -> None:
    with visits.of("reader") as visitor:
        visitor.open(f"/models/{world.local.models.find(ANNS_JOB).slug}")
        expect(visitor.page.get_by_text("Publishing needs the right to train.")).to_be_visible()
        expect(visitor.page.get_by_role("button", name="Publish to the Hub")).to_have_count(0)
        expect(visitor.page.get_by_role("link", name="Train again")).to_have_count(0)


def test_somebody_without_models_is_told_how_to_begin(visits: Visits) -> None:
    with visits.of("bob") as visitor:
        visitor.open("/models")
        expect(visitor.page.get_by_role("heading", name="No model yet")).to_be_visible()
        expect(visitor.page.get_by_role("link", name="Start a training")).to_be_visible()
