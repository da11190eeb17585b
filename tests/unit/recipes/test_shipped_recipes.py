"""The shipped recipes: their configs are what their trainers read, and no value of a person's becomes anything else."""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.plan import JobIdentity, Plan, render_configs, render_plan
from stationmaster.recipes.plan_steps import training_places
from stationmaster.recipes.registry import find, lint, list_recipes
from stationmaster.recipes.schema import StrParameter
from tests.support.jobs.trainer_keys import AI_TOOLKIT, KOHYA_DATASET, KOHYA_TRAINING, Kinds, wrong_keys

FLUX, KONTEXT = "config/flux-lora-24gb-aitoolkit.yaml", "config/flux-kontext-lora-24gb-aitoolkit.yaml"
SDXL, SDXL_DATASET = "config/sdxl-lora-kohya.toml", "config/dataset.toml"
CONFIGS = [
    ("flux-lora@1", FLUX, AI_TOOLKIT),
    ("flux-kontext-lora@1", KONTEXT, AI_TOOLKIT),
    ("sdxl-lora@1", SDXL, KOHYA_TRAINING),
    ("sdxl-lora@1", SDXL_DATASET, KOHYA_DATASET),
]
SHIPPED = [
    *("flux-kontext-lora@1", "flux-kontext-lora@2", "flux-lora@1", "flux-lora@2"),
    *("llm-lora@1", "llm-lora@2", "sdxl-lora@1", "sdxl-lora@2", "tiny-lora@1"),
]
HOSTILE = [
    "'; rm -rf / #",
    '"',
    "$(touch broken)",
    "`touch broken`",
    "a\nb: c",
    "a;b",
    "../../etc",
    "{{ 7 * 7 }}",
    "--steps=1",
    "${HF_TOKEN}",
    "é\u202e🚂\x7f",
]
READ: Mapping[str, Callable[[str], Any]] = {"yaml": yaml.safe_load, "toml": tomllib.loads, "json": json.loads}


def plan_of(
    reference: str, *, name: str = "My portrait", trigger: str = "ohwx", resume: bool = False, **given: object
) -> Plan:
    recipe = find(reference).recipe
    return render_plan(
        recipe,
        parameters=resolve(recipe, given),
        job=JobIdentity(id="01JOB", name=name, trigger=trigger, attempt=1),
        machine_root="/opt/stationmaster/jobs/01JOB",
        resume_from="resume/checkpoint.safetensors" if resume else None,
        resume_step=500,
    )


def config_of(plan: Plan, path: str) -> Any:
    text = next(config.text for config in plan.configs if config.path == path)
    return READ[path.rpartition(".")[2]](text)


def test_all_of_them_are_there_and_without_fault() -> None:
    found = list_recipes()
    assert [one.recipe.reference for one in found.recipes] == SHIPPED
    assert found.problems == ()
    assert [problem for one in found.recipes for problem in lint(one.file)] == []


@pytest.mark.parametrize("reference", SHIPPED)
def test_configs_and_places_of_the_training_are_known_without_the_plan(reference: str) -> None:
    recipe, plan = find(reference).recipe, plan_of(reference)
    identity = JobIdentity(id="01JOB", name="My portrait", trigger="ohwx", attempt=1)
    configs = render_configs(
        recipe, parameters=resolve(recipe, {}), job=identity, machine_root="/opt/stationmaster/jobs/01JOB"
    )
    assert configs == plan.configs
    assert training_places(recipe) == [place for place, step in enumerate(plan.steps) if step.training]


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize(("reference", "path", "known"), CONFIGS)
def test_every_key_of_a_config_is_one_that_its_trainer_reads(
    reference: str, path: str, known: Mapping[str, Kinds], resume: bool
) -> None:
    plans = (plan_of(reference, resume=resume), plan_of(reference, resume=resume, lora_dropout=0.1, batch_size=2))
    for plan in plans:
        assert wrong_keys(config_of(plan, path), known) == []


@pytest.mark.parametrize(("reference", "path", "known"), CONFIGS)
def test_a_typo_in_any_key_of_a_config_is_found(reference: str, path: str, known: Mapping[str, Kinds]) -> None:
    text = next(config.text for config in plan_of(reference).configs if config.path == path)
    names = {place.removesuffix("!").rpartition(".")[2].removesuffix("[]") for place in known}
    planted = 0
    for name in sorted(names):
        assign = ":" if path.endswith("yaml") else " ="
        if f"{name}{assign}" not in text:
            continue
        spoilt = READ[path.rpartition(".")[2]](text.replace(f"{name}{assign}", f"{name}z{assign}"))
        assert any("is not read" in problem for problem in wrong_keys(spoilt, known)), name
        planted += 1
    assert planted >= 5


def test_flux_trains_with_the_agreed_defaults() -> None:
    process = config_of(plan_of("flux-lora@1"), FLUX)["config"]["process"][0]
    assert process["train"]["steps"] == 4000
    assert process["train"]["lr"] == 1e-4
    assert (process["network"]["linear"], process["network"]["linear_alpha"]) == (32, 32)
    assert process["save"]["save_every"] == 250
    assert process["datasets"][0]["caption_dropout_rate"] == 0.05
    assert "dropout" not in process["network"], "0.05 is the captions' dropout, not the LoRA's"
    assert process["model"]["quantize"] is True
    assert process["datasets"][0]["resolution"] == [512, 768, 1024]
    assert process["trigger_word"] == "ohwx"


def test_a_trigger_and_a_resolution_are_left_out_when_not_wanted() -> None:
    process = config_of(plan_of("flux-lora@1", trigger="", largest_resolution="512"), FLUX)["config"]["process"][0]
    assert "trigger_word" not in process
    assert process["datasets"][0]["resolution"] == [512]


@pytest.mark.parametrize("reference", ["flux-lora@1", "flux-kontext-lora@1"])
def test_gated_models_are_fetched_with_a_token_that_only_the_training_gets(reference: str) -> None:
    assert {step.name: step.secrets for step in plan_of(reference).steps if step.secrets} == {"train": ("HF_TOKEN",)}


@pytest.mark.parametrize("reference", SHIPPED[:-1])
def test_the_plan_is_as_it_was(reference: str) -> None:
    plan = plan_of(reference, resume=True)
    golden = Path(__file__).parent / "plans" / f"{reference}.json"
    found = {"plan": plan.as_json(), "configs": {config.path: config.text for config in plan.configs}}
    assert found == json.loads(golden.read_text(encoding="utf-8"))


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("reference", SHIPPED)
def test_names_triggers_and_texts_come_out_as_data(reference: str, hostile: str) -> None:
    recipe = find(reference).recipe
    texts = {name: hostile for name, each in recipe.parameters.items() if isinstance(each, StrParameter)}
    tame, wild = plan_of(reference), plan_of(reference, name=hostile, trigger=hostile, resume=False, **texts)
    for tame_step, wild_step in zip(tame.steps, wild.steps, strict=True):
        if tame_step.argv[:2] == ("/bin/sh", "-euc"):
            assert wild_step.argv[:4] == tame_step.argv[:4], "the script itself must not change"
        else:
            assert len(wild_step.argv) == len(tame_step.argv)
    for before, after in zip(tame.configs, wild.configs, strict=True):
        assert "$" not in after.text
        kind = after.path.rpartition(".")[2]
        assert _shape(READ[kind](after.text)) == _shape(READ[kind](before.text))


def _shape(value: Any) -> Any:
    """The keys and types of data, without its texts; a list of texts is a text of several lines."""
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return "text" if all(isinstance(each, str) for each in value) else [_shape(each) for each in value]
    return "text" if isinstance(value, str) else value


def test_the_pairs_are_told_apart_before_the_training(tmp_path: Path) -> None:
    """ai-toolkit reads sub-folders too: control images must not lie among the results."""
    root = tmp_path / "a job; $(touch broken)"
    (root / "dataset" / "control").mkdir(parents=True)
    (root / "work").mkdir()
    for name in ("1.png", "1.txt", "control/1.png"):
        (root / "dataset" / name).write_text(name)
    recipe = find("flux-kontext-lora@1").recipe
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, {}),
        job=JobIdentity(id="j", name="n", trigger="", attempt=1),
        machine_root=str(root),
    )
    (pairs,) = [step for step in plan.steps if step.name == "pairs"]
    for _ in range(2):  # a second try finds what the first one left
        subprocess.run(pairs.argv, check=True, cwd=root / "work")
    left = sorted(str(path.relative_to(root / "work")) for path in (root / "work").rglob("*") if path.is_file())
    assert left == ["control/1.png", "results/1.png", "results/1.txt"]
    dataset = config_of(plan, KONTEXT)["config"]["process"][0]["datasets"][0]
    assert (dataset["folder_path"], dataset["control_path"]) == (f"{root}/work/results", f"{root}/work/control")


@pytest.mark.parametrize("resume", [False, True])
def test_a_checkpoint_is_put_where_ai_toolkit_looks_for_one(tmp_path: Path, resume: bool) -> None:
    (tmp_path / "resume").mkdir()
    (tmp_path / "resume" / "checkpoint.safetensors").write_bytes(b"weights")
    recipe = find("flux-lora@1").recipe
    plan = render_plan(
        recipe,
        parameters=resolve(recipe, {}),
        job=JobIdentity(id="j", name="My cat", trigger="", attempt=1),
        machine_root=str(tmp_path),
        resume_from="resume/checkpoint.safetensors" if resume else None,
        resume_step=1250,
    )
    (step,) = [step for step in plan.steps if step.name == "checkpoint"]
    for _ in range(2):
        subprocess.run(step.argv, check=True, env={"PATH": os.environ["PATH"]})
    found = [str(path.relative_to(tmp_path)) for path in (tmp_path / "output").rglob("*.safetensors")]
    assert found == (["output/My_cat/My_cat_000001250.safetensors"] if resume else [])


@pytest.mark.parametrize(("reference", "folder"), [("llm-lora@1", "llm-lora@1"), ("llm-lora@2", "llm-lora")])
def test_the_language_model_s_script_takes_every_argument_that_the_recipe_gives_it(reference: str, folder: str) -> None:
    script = ast.parse((BUILTIN / folder / "train.py").read_text(encoding="utf-8"))
    known = {
        call.args[0].value
        for call in ast.walk(script)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == argparse.ArgumentParser.add_argument.__name__
        and isinstance(call.args[0], ast.Constant)
    }
    (train,) = [step for step in plan_of(reference, resume=True).steps if step.training]
    given = [argument.partition("=")[0] for argument in train.argv[2:]]
    assert set(given) <= known
    assert "--resume" in given
