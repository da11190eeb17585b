"""What a recipe declares about its dataset is what `dataset check --recipe` and a submission follow."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from stationmaster.station.proposals import TrainRequest
from tests.support.commands.command_line import stationmaster
from tests.support.jobs.dataset_pictures import good_set
from tests.support.jobs.local_world import LocalWorld


def codes(folder: Path, recipe: str, home: Path) -> set[str]:
    """What the command finds wrong; warnings are left out."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "STATIONMASTER_HOME": str(home)}
    done = stationmaster("dataset", "check", str(folder), "--recipe", recipe, "--json", environ=environ)
    found = {each["code"] for each in json.loads(done.stdout)["problems"] if each["severity"] == "error"}
    assert (done.returncode == 0) == (not found), done.stderr
    return found


def test_a_recipe_for_pairs_asks_for_a_control_image_of_every_image(tmp_path: Path) -> None:
    folder = good_set(tmp_path / "pairs")
    assert codes(folder, "flux-lora@1", tmp_path) == set()
    assert codes(folder, "flux-kontext-lora@1", tmp_path) == {"control_missing"}
    (folder / "control").mkdir()
    for image in [*folder.glob("*.png"), *folder.glob("*.jpg")]:
        shutil.copy(image, folder / "control" / image.name)
    assert "control_missing" not in codes(folder, "flux-kontext-lora@1", tmp_path)


def test_a_recipe_for_language_models_takes_rows_and_refuses_pictures(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    lines = [json.dumps({"prompt": f"what is {number}?", "completion": f"a {number}"}) for number in range(12)]
    (rows / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert codes(rows, "llm-lora@1", tmp_path) == set()
    assert codes(good_set(tmp_path / "pictures"), "llm-lora@1", tmp_path) != set()


def test_a_submission_follows_the_same_rules(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    lines = [json.dumps({"text": f"a text about {number}"}) for number in range(12)]
    (rows / "train.jsonl").write_text("\n".join(lines), encoding="utf-8")
    registry = tmp_path / "recipes" / "texts"
    registry.mkdir(parents=True)
    (registry / "recipe.yaml").write_text(
        "{name: texts, version: 1, title: Texts, description: On texts., needs: {gpus: 0, disk_gib: 1},"
        " dataset: {kind: text, text_format: text}, steps: [{name: train, training: true, argv: ['true']}],"
        " outputs: [{pattern: output/*, kind: checkpoint}], time: {steps: '1', seconds_per_step: 1.0}}",
        encoding="utf-8",
    )
    with LocalWorld(tmp_path, STATIONMASTER_RECIPES=str(tmp_path / "recipes")) as world:
        preview = world.station.proposals.check(TrainRequest(recipe="texts@1", dataset=rows, parameters={}))
    assert preview.recipe == "texts@1"
    assert preview.dataset_bytes > 0
