"""Whoever takes over a trainer's repository runs nothing on your machines: recipes fetch one commit, by its hash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stationmaster.recipes.plan_steps import PlanStep
from stationmaster.recipes.registry import find
from tests.support.commands.command_line import stationmaster
from tests.unit.recipes.test_shipped_recipes import plan_of

TRAINERS = {
    "flux-lora@1": ("ostris/ai-toolkit", "run.py"),
    "flux-kontext-lora@1": ("ostris/ai-toolkit", "run.py"),
    "flux-lora@2": ("ostris/ai-toolkit", "run.py"),
    "flux-kontext-lora@2": ("ostris/ai-toolkit", "run.py"),
    "sdxl-lora@1": ("kohya-ss/sd-scripts", "sdxl_train_network.py"),
    "sdxl-lora@2": ("kohya-ss/sd-scripts", "sdxl_train_network.py"),
}


def taken_over(folder: Path, script: str) -> Path:
    """A repository with the branches and tags of the real one, but not its commits."""
    folder.mkdir()
    (folder / script).write_text("print('taken over')\n")
    (folder / "requirements.txt").write_text("")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "--quiet", "-b", "main"], ["add", "."], ["commit", "--quiet", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    for tag in ("v0.9.1", "v0.10.1"):
        subprocess.run([*git, "tag", tag], check=True)
    return folder


def bootstrap(reference: str, trainer: Path) -> PlanStep:
    plan = plan_of(reference, trainer=str(trainer), python="python3")
    (step,) = (step for step in plan.steps if step.name == "trainer")
    return step


def test_a_recipe_of_your_own_that_pins_nothing_is_warned_of_and_can_be_used(tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}
    folder = tmp_path / "mine"
    assert stationmaster("recipes", "new", str(folder), environ=environ).returncode == 0
    assert "warning" not in stationmaster("recipes", "lint", str(folder), environ=environ).stdout
    with (folder / "recipe.yaml").open("a") as file:
        file.write("image: owner/trainer:latest\n")
        file.write("bootstrap: [{name: trainer, shell: git clone https://example.org/x, timeout: 1h}]\n")
    linted = stationmaster("recipes", "lint", str(folder), environ=environ)
    assert linted.returncode == 0, linted.stderr
    assert [line.startswith("warning: ") for line in linted.stdout.splitlines()] == [True, True, False]
    assert "owner/trainer@sha256:…" in linted.stdout


@pytest.mark.parametrize("reference", sorted(TRAINERS))
def test_a_repository_that_was_taken_over_reaches_no_machine(tmp_path: Path, reference: str) -> None:
    repository, script = TRAINERS[reference]
    source, trainer = taken_over(tmp_path / "taken-over", script), tmp_path / "trainer"
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "file://{source}"]\n\tinsteadOf = https://github.com/{repository}.git\n')
    step = bootstrap(reference, trainer)
    folder = find(reference).folder.with_name("flux-lora")  # kontext uses its files
    argv = [word.replace("/opt/stationmaster/jobs/01JOB/recipe", str(folder)) for word in step.argv]
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": str(settings), "PIP_NO_INDEX": "1", **step.env}
    done = subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    assert "not our ref" in done.stderr, "it asked for the commit, and this repository has another"
    assert not (trainer / script).exists()
