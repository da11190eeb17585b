"""examples/own-recipe: linted, trained, stopped by its end, and continued from a checkpoint."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.commands.example_runs import EXAMPLES, Person

EXAMPLE = EXAMPLES / "own-recipe"


def test_the_recipe_is_valid_and_trains(person: Person, pictures: Path) -> None:
    settings = {"STATIONMASTER_RECIPES": str(EXAMPLE)}
    linted = person.run("stationmaster", "recipes", "lint", "colour-model", cwd=EXAMPLE)
    assert linted.code == 0, linted.err
    train = ("train", "--recipe", "colour-model@1", "--dataset", pictures, "--name", "cats", "--id", "mine")
    ran = person.run("stationmaster", *train, "--save-every", "20", "--watch", environ=settings)
    assert ran.code == 0, ran.err
    job = person.home.show("mine")
    assert (job["progress"]["step"], job["model_step"] or 50) == (50, 50)
    assert job["progress"]["loss"] < job["progress"]["first_loss"]
    steps = [one["step"] for one in job["checkpoints"] if one["kind"] == "checkpoint"]
    assert {20, 40} <= set(steps)
    assert Path(job["model"]).is_file()


def test_the_trainer_stops_with_a_checkpoint_and_continues_from_it(person: Person, pictures: Path) -> None:
    """By itself, as a developer tries it before there is a recipe."""
    output, config = person.folder / "out", person.folder / "train.json"
    asked = {"name": "cats", "steps": 30, "learning_rate": 0.1, "save_every": 10}
    config.write_text(json.dumps({**asked, "dataset": str(pictures), "output": str(output)}))
    train = (sys.executable, EXAMPLE / "colour-model" / "train.py", config)
    whole = person.run(*train)
    assert whole.code == 0, whole.err
    resumed = person.run(*train, f"--resume={output / 'cats-000020.safetensors'}")
    assert resumed.out.splitlines()[0].startswith("step 21/30")
    assert resumed.out.splitlines()[-1] == whole.out.splitlines()[-1]
