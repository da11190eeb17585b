from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.registry import lint, list_recipes, load
from stationmaster.recipes.schema import Recipe

SHIPPED = [pytest.param(stored.folder, id=stored.recipe.reference) for stored in list_recipes().recipes]
COMMIT, DIGEST = "8f4ee8fc343b047965cd8976fca65c3a35b7593a", f"sha256:{'0' * 64}"
RECIPE = """\
name: mine
version: 1
title: Mine
description: Mine.
steps:
  - {name: train, training: true, argv: [python3, train.py], timeout: 1h, expect: [output/x.safetensors]}
outputs: [{pattern: output/*.safetensors, kind: checkpoint}]
time: {steps: "10", seconds_per_step: 1}
"""


def linted(tmp_path: Path, more: str, **files: str) -> list[tuple[str, bool]]:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "recipe.yaml").write_text(RECIPE + more)
    load(folder)  # a warning keeps no one from using it
    return [(problem.field, bool(problem.line and problem.fix)) for problem in lint(folder)]


@pytest.mark.parametrize("folder", SHIPPED)
def test_a_shipped_recipe_pins_its_trainer_and_image_or_says_why_not(folder: Path) -> None:
    assert lint(folder) == []


@pytest.mark.parametrize("folder", SHIPPED)
def test_a_shipped_recipe_installs_exact_versions(folder: Path) -> None:
    recipe = load(folder).recipe
    named = [word for text in _scripts(recipe) for word in _installed(text)]
    named += [word for path in folder.glob("*.py") for word in _requirements(path)]
    # torchvision goes with the PyTorch that a machine has, which stays; a constraint pins that one.
    loose = {word for word in named if "==" not in word} - {"torchvision"}
    assert not loose, f"{folder.name} installs whatever is published that day: {sorted(loose)}"


def _scripts(recipe: Recipe) -> list[str]:
    return [step.shell for step in (*recipe.bootstrap, *recipe.steps, *recipe.cleanup) if step.shell is not None]


def _installed(script: str) -> list[str]:
    """The packages in `pip install` commands; lists of requirements belong to the trainer's commit."""
    found = []
    for command in re.findall(r"pip install ([^\n;&|]*)", re.sub(r"\{\{.*?\}\}", "value", script)):
        words = iter(shlex.split(command))
        for word in words:
            if word in ("-r", "-c"):
                next(words)
            elif not word.startswith("-"):
                found.append(word)
    return found


def _requirements(path: Path) -> list[str]:
    """The tuples of packages in a script of a recipe: every one that names a version."""
    tuples = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Tuple)]
    texts = [[one.value for one in node.elts if isinstance(one, ast.Constant)] for node in tuples]
    return [str(each) for group in texts if any(re.search(r"\w[=<>~]=", str(one)) for one in group) for each in group]


def test_the_scripts_of_shipped_recipes_are_looked_at() -> None:
    assert _requirements(BUILTIN / "llm-lora" / "packages.py")
    assert _requirements(BUILTIN / "flux-lora" / "install.py")
    assert _installed("x || python3 -m pip install -c a 'torch==1' -r b --upgrade peft; y") == ["torch==1", "peft"]


@pytest.mark.parametrize("image", ["owner/trainer", "owner/trainer:latest", "registry:5000/owner/trainer:1.2"])
def test_an_image_without_a_digest_is_warned_of(tmp_path: Path, image: str) -> None:
    assert linted(tmp_path, f"image: {image}\n") == [("image", True)]


def test_the_image_of_a_container_is_looked_at_too(tmp_path: Path) -> None:
    container = "runtime: podman\ncontainer: {image: owner/trainer:1}\n"
    assert linted(tmp_path, container) == [("container.image", True)]


@pytest.mark.parametrize(
    "image", [f"image: owner/trainer@{DIGEST}\n", "image: owner/trainer:1\nunpinned_image: It is built every night.\n"]
)
def test_a_digest_or_a_reason_is_enough(tmp_path: Path, image: str) -> None:
    assert linted(tmp_path, image) == []


@pytest.mark.parametrize(
    "script",
    [
        "git clone --depth 1 https://example.org/x",
        "git clone --branch v1 https://example.org/x",
        "git -C x fetch origin main",
        "cd x && git pull",
    ],
)
def test_a_repository_without_a_commit_is_warned_of(tmp_path: Path, script: str) -> None:
    more = f"bootstrap: [{{name: trainer, shell: '{script}', timeout: 1h}}]\n"
    assert linted(tmp_path, more) == [("bootstrap[0]", True)]


def test_a_script_of_the_recipe_that_clones_is_warned_of(tmp_path: Path) -> None:
    clones = "import subprocess\nsubprocess.run(['git', 'clone', 'https://example.org/x'])\n"
    assert linted(tmp_path, "files: [install.py]\n", install=clones) == [("files[0]", True)]


def test_a_commit_or_a_parameter_with_one_is_enough(tmp_path: Path) -> None:
    more = f"""\
parameters:
  commit: {{type: str, default: {COMMIT}, max_length: 40, help: The commit of the trainer.}}
bootstrap:
  - {{name: one, shell: 'git -C x fetch --depth 1 https://example.org/x {COMMIT}', timeout: 1h}}
  - {{name: two, shell: 'git -C x fetch --depth 1 https://example.org/x {{{{ parameters.commit }}}}', timeout: 1h}}
"""
    assert linted(tmp_path, more) == []
