"""A trainer may give its model any name that a recipe can declare: what came home stays as it came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.model import Outcome
from tests.support.commands.cli_runs import Home
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.recipe_jobs import MODEL, scripted

PLACES = [
    "model.safetensors",
    "latest_checkpoint.safetensors",
    "tmp/model.safetensors",
    "checkpoints/attempt-1/model.safetensors",
    "files/attempt-1/model.safetensors",
]


@pytest.mark.parametrize("place", PLACES)
def test_a_model_is_neither_linked_over_nor_removed_whatever_its_name(tmp_path: Path, place: str) -> None:
    folders = f"mkdir -p {{{{ output.dir }}}}/../{Path(place).parent}\n"
    train = folders + MODEL.replace("model.safetensors", f"../{place}")
    pattern = str(Path(place).with_name("*.safetensors")) if place.startswith("tmp/") else place
    recipe = scripted(train).replace("output/*.safetensors", pattern)
    folder = tmp_path / "recipes" / "scripted"
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text(recipe, encoding="utf-8")
    pictures = write_pictures(tmp_path / "pictures")
    with Home(tmp_path) as home:
        home.environ["STATIONMASTER_RECIPES"] = str(tmp_path / "recipes")
        linted = home.run("recipes", "lint", str(folder / "recipe.yaml"))
        assert linted.code == 0, linted.out + linted.err
        ran = home.run("train", "--recipe", "scripted", "--dataset", str(pictures), "--provider", "loopback",
                       "--id", "kept", "--yes", "--watch")  # fmt: skip
        assert ran.code == 0, ran.out + ran.err
        job = home.store.jobs.get("kept")
        assert job.outcome is Outcome.COMPLETED
        model = Path(job.model.address or "")
        assert not model.is_symlink()
        assert model.read_bytes().endswith(b"}}x")
        assert (home.path / "jobs" / "kept" / "model.safetensors").resolve() == model.resolve()
        pulled = home.run("pull", "kept", str(tmp_path / "pulled"), "--json")
        assert pulled.code == 0, pulled.err
        assert [Path(path).read_bytes() for path in json.loads(pulled.out)["files"]] == [model.read_bytes()]
