"""A recipe's parameters are options of the commands that take a recipe, and stand in their help."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home

SWITCH = """
name: switched
version: 1
title: t
description: d
framework: auto
needs: {gpus: 0, vram_gib: 0, disk_gib: 1}
parameters:
  cache_latents: {type: bool, default: true, help: Whether latents are kept.}
  name: {type: str, default: x, help: A name that the command itself has for something else.}
dataset: {kind: images, min_images: 1, captions: optional}
steps: [{name: train, training: true, argv: [echo, "{{ parameters.cache_latents }}", "{{ parameters.name }}"]}]
outputs: [{pattern: output/*.safetensors, kind: checkpoint}]
time: {steps: "1", seconds_per_step: 1}
"""


def planned(home: Home, *words: str) -> dict[str, object]:
    ran = home.run("train", *words, "--provider", "loopback", "--dry-run", "--json")
    assert ran.code == 0, ran.err
    parameters: dict[str, object] = json.loads(ran.out)["parameters"]
    return parameters


def test_parameters_are_given_as_options(home: Home, pictures: Path) -> None:
    common = ("--recipe", "tiny-lora@1", "--dataset", str(pictures))
    parameters = planned(home, *common, "--learning-rate", "0.5", "--rank=16", "-p", "seed=3")
    assert (parameters["learning_rate"], parameters["rank"], parameters["seed"]) == (0.5, 16, 3)
    assert planned(home, *common, "--rank", "4", "-p", "rank=5")["rank"] == 5


def test_the_recipe_may_stand_in_a_job_file(home: Home, pictures: Path, tmp_path: Path) -> None:
    job_file = tmp_path / "job.yaml"
    job_file.write_text(f"tool: tiny-lora@1\ndataset: {pictures}\nparameters: {{rank: 2, seed: 9}}\n")
    parameters = planned(home, str(job_file), "--rank", "16")
    assert (parameters["rank"], parameters["seed"]) == (16, 9)


def test_a_switch_can_be_turned_off_and_own_options_stay(home: Home, pictures: Path, tmp_path: Path) -> None:
    (tmp_path / "recipes" / "switched").mkdir(parents=True)
    (tmp_path / "recipes" / "switched" / "recipe.yaml").write_text(SWITCH)
    home.environ["STATIONMASTER_RECIPES"] = str(tmp_path / "recipes")
    common = ("--recipe", "switched@1", "--dataset", str(pictures), "--name", "cats")
    assert planned(home, *common)["cache_latents"] is True
    assert planned(home, *common, "--no-cache-latents") == {"cache_latents": False, "name": "x"}


@pytest.mark.parametrize("command", [("train", "--recipe", "tiny-lora@1"), ("estimate", "tiny-lora@1")])
def test_the_help_shows_them_with_their_limits(home: Home, command: tuple[str, ...]) -> None:
    ran = home.run(*command, "--help")
    assert ran.code == 0
    assert "--learning-rate VALUE" in ran.out
    assert "a whole number from 1 to 64; default 8" in " ".join(ran.out.split())
    assert "--learning-rate" not in home.run(command[0], "--help").out


def test_an_estimate_takes_them_too(home: Home) -> None:
    ran = home.run("estimate", "--images", "12", "tiny-lora@1", "--seconds-per-step", "10", "--json")
    assert json.loads(ran.out)["hours"]["expected"] > 1


def test_an_estimate_for_a_gpu_warns_when_the_training_will_not_fit(home: Home) -> None:
    ran = home.run("estimate", "flux-lora@2", "--batch-size", "4", "--gpu", "RTX 4090")
    assert "  memory 27.5 GiB of 24 GiB (115 %)" in ran.out
    assert "it will not fit: about 27.5 of the 24.0 GiB of RTX 4090; to fit, set batch_size=1" in ran.out
    assert "cost" not in ran.out, "no offer has this GPU, so there is no price"
    data = json.loads(home.run("estimate", "flux-lora@2", "--gpu", "A100", "--vram", "80", "--json").out)
    assert (data["gpu_gib"], data["cost_usd"]) == (80, None)
    assert data["gpu_memory_gib"]["low"] < data["gpu_memory_gib"]["expected"] < data["gpu_memory_gib"]["high"]


def test_what_is_wrong_with_the_recipe_is_told_rather_than_what_follows_from_it(home: Home) -> None:
    ran = home.run("train", "--recipe", "nope@1", "--rank", "16", "--dataset", "x")
    assert (ran.code, ran.err.splitlines()[0]) == (6, "error: there is no recipe nope@1")
    assert "rank" in home.run("train", "--recipe", "tiny-lora@1", "--ranck", "16").err
