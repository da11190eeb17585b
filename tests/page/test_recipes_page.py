"""The views of recipes: what each makes and needs, and a recipe that is checked while it is written."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from stationmaster.recipes.skeleton import write_skeleton
from tests.support.browser.looks import TAB_PANEL, problems_in_light_and_narrow
from tests.support.browser.visitor import Visitor


def test_a_recipe_tells_what_it_needs_what_can_be_set_and_what_it_runs(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/recipes")
    recipe = page.get_by_role("link", name="FLUX.1-dev LoRA", exact=True)
    expect(recipe).to_be_visible()
    assert problems_in_light_and_narrow(visitor) == []
    recipe.click()
    expect(page.get_by_role("heading", level=1, name="FLUX.1-dev LoRA")).to_be_visible()
    expect(page.get_by_text("1 GPU with 24 GB, 80 GB of disk.")).to_be_visible()
    expect(page.get_by_text("A secret: HF_TOKEN.")).to_be_visible()
    row = page.get_by_role("row", name="learning_rate")
    expect(row).to_contain_text("1e-4")
    expect(row).to_contain_text("1e-7 to 1")
    expect(page.get_by_text("train.py").first).to_be_visible()
    expect(page.get_by_role("link", name="Train with it")).to_have_attribute("href", "/new?recipe=flux-lora%402")
    expect(page.get_by_text("What runs on the machine", exact=True)).to_be_visible()
    assert problems_in_light_and_narrow(visitor) == []


def test_a_recipe_is_checked_while_it_is_written_and_from_a_file(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    file = write_skeleton(tmp_path / "portrait")
    text = file.read_text()
    visitor.open("/recipes?tab=check")
    expect(page.get_by_text("Nothing to check yet.", exact=True)).to_be_visible()
    assert problems_in_light_and_narrow(visitor, within=TAB_PANEL) == []
    area = page.get_by_label("recipe.yaml")
    area.fill(text.replace("version:", "verson:", 1))
    expect(page.get_by_text("did you mean `version`?")).to_be_visible()
    page.get_by_role("button", name="Line 3", exact=True).click()
    chosen = area.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
    assert chosen.startswith("verson:")
    area.fill(text)
    expect(page.get_by_text("Nothing: it can be used.")).to_be_visible()
    area.fill("a: &a [1]\nb: *a\n")
    expect(page.get_by_text("1 problem", exact=False)).to_be_visible()
    page.get_by_label("From a file").set_input_files(file)
    expect(area).to_have_value(text)
    expect(page.get_by_text("Nothing: it can be used.")).to_be_visible()
