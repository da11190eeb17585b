"""Datasets, as a person keeps them: uploaded, looked at, checked, trained with, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from stationmaster.station.dataset_uploads import NewUpload
from tests.support.browser.looks import problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor
from tests.support.browser.visits import Visits
from tests.support.jobs.dataset_pictures import good_set
from tests.support.jobs.peopled_world import PeopledWorld


@pytest.fixture
def bob(visits: Visits) -> Iterator[Visitor]:
    with visits.of("bob") as opened:
        yield opened


def stored(world: PeopledWorld, name: str, folder: Path, *, whole: bool = True) -> str:
    """An upload of bob's, sent by another program; returns its id."""
    uploads = world.local.dataset_uploads
    new = uploads.start(NewUpload(owner="bob", name=name, recipe="tiny-lora@1", trigger="smland"))
    for file in sorted(good_set(folder, images=4).iterdir()):
        content = file.read_bytes()
        with closing(uploads.write(new.id, file.name, size=len(content) + (0 if whole else 5))) as writer:
            writer.append(content)
            if whole:
                writer.finish()
    return new.id


def test_an_upload_shows_its_pictures_captions_and_report(bob: Visitor, world: PeopledWorld, tmp_path: Path) -> None:
    stored(world, "valley", tmp_path / "valley")
    bob.open("/datasets")
    page = bob.page
    section = page.get_by_role("region", name="valley")
    expect(section).to_contain_text("✓ Complete")
    expect(section).to_contain_text("8 files")
    section.get_by_role("button", name="Pictures and check").click()
    expect(section.get_by_text("✓ Ready")).to_be_visible()
    pictures = section.get_by_role("list", name="Pictures").get_by_role("img")
    expect(pictures).to_have_count(4)
    for one in pictures.all():
        one.scroll_into_view_if_needed()
        expect(one).to_have_js_property("complete", True)
    assert 0 not in pictures.evaluate_all("all => all.map(one => one.naturalWidth)")
    expect(section.locator("mark", has_text="smland").first).to_be_visible()
    assert problems_in_light_and_narrow(bob) == []
    section.get_by_role("button", name="Train with it").click()
    page.wait_for_url("**/new?dataset=upload*")
    expect(page.get_by_label("Trigger", exact=True)).to_have_value("smland")


def test_an_upload_that_stopped_goes_on_with_the_same_files(bob: Visitor, world: PeopledWorld, tmp_path: Path) -> None:
    upload = stored(world, "stopped", tmp_path / "stopped", whole=False)
    caption = min((tmp_path / "stopped").glob("*.txt"))
    size = caption.stat().st_size
    with closing(world.local.dataset_uploads.write(upload, caption.name, size=size, restart=True)) as writer:
        writer.append(b"x" * size)
        writer.finish()
    page = bob.page
    bob.open(f"/datasets?upload={upload}")
    section = page.get_by_role("region", name="stopped")
    expect(section).to_contain_text("▲ Incomplete")
    # Files of another size than announced: they are sent from their beginning.
    section.get_by_label("Folder of the dataset").set_input_files(tmp_path / "stopped")
    expect(section.get_by_text("Everything has arrived.")).to_be_visible()
    expect(section.get_by_text("✓ Complete")).to_be_visible()
    expect(section.get_by_text("✓ Ready")).to_be_visible()
    assert world.local.dataset_uploads.find(upload).is_complete
    arrived = world.settings.home / "uploads" / upload / "files" / caption.name
    assert arrived.read_bytes() == caption.read_bytes(), "a caption that was corrected meanwhile"


def test_an_upload_is_paused_and_continued(bob: Visitor, world: PeopledWorld, tmp_path: Path) -> None:
    page = bob.page
    folder = good_set(tmp_path / "paused", images=4)
    held: list[Route] = []
    page.route("**/api/datasets/*/files/**", lambda route: held.append(route))
    bob.open("/new?recipe=tiny-lora@1")
    page.get_by_label("Folder of the dataset").set_input_files(folder)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused. What has arrived stays.")).to_be_visible()
    for route in held:
        route.continue_()
    expect(page.get_by_text(f"{len(held)} of 8 files")).to_be_visible()
    expect(page.get_by_text("The dataset is still being uploaded.")).to_be_visible()
    page.unroute("**/api/datasets/*/files/**")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Everything has arrived.")).to_be_visible()
    (upload,) = [one for one in world.local.dataset_uploads.listed("bob") if one.name == "paused"]
    assert (upload.is_complete, upload.files) == (True, 8)


def test_deleting_asks_first(bob: Visitor, world: PeopledWorld, tmp_path: Path) -> None:
    stored(world, "unwanted", tmp_path / "unwanted")
    page = bob.page
    bob.open("/datasets")
    section = page.get_by_role("region", name="unwanted")
    section.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete unwanted?")
    expect(dialog).to_contain_text("8 files")
    dialog.get_by_role("button", name="Delete it").click()
    expect(section).to_have_count(0)
    expect(page.get_by_text("Deleted unwanted")).to_be_visible()
