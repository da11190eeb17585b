"""The FLUX recipes' second versions: their configs, names, checkpoints and control pictures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.registry import find
from tests.support.jobs.dataset_pictures import encoded, picture
from tests.support.jobs.trainer_keys import AI_TOOLKIT, wrong_keys
from tests.unit.recipes.test_shipped_recipes import HOSTILE, READ

RECIPES = ("flux-lora@2", "flux-kontext-lora@2")
#: What ai-toolkit writes into the folder of its checkpoints beside them.
ITS_OTHER_FILES = ("config.yaml", "samples", "optimizer.pt", "loss_log.db", "loss_log.db-wal", "loss_log.db-shm")
#: Parts of a name that it takes for another kind of model.
ITS_KINDS = ("_LoRA", "_refiner", "_t2i", "_cn")


def plan_of(
    reference: str, root: Path = Path("/job"), *, name: str = "cat", resume: bool = False, state: bool = False
) -> Plan:
    recipe = find(reference).recipe
    return render_plan(
        recipe,
        parameters=resolve(recipe, {"trainer": str(root), "python": sys.executable}),
        job=JobIdentity(id="j", name=name, trigger="ohwx", attempt=1),
        machine_root=str(root),
        resume_from="resume/checkpoint.safetensors" if resume else None,
        resume_step=1250,
        resume_state="resume/state" if state else None,
    )


def config_of(plan: Plan) -> dict[str, Any]:
    (config,) = plan.configs
    found: dict[str, Any] = READ[config.path.rpartition(".")[2]](config.text)
    return found


@pytest.mark.parametrize("reference", RECIPES)
def test_every_key_of_the_config_is_one_that_ai_toolkit_reads(reference: str) -> None:
    assert wrong_keys(config_of(plan_of(reference)), AI_TOOLKIT) == []


@pytest.mark.parametrize("reference", RECIPES)
@pytest.mark.parametrize("name", ["con", "sam", "opt", "loss", "c", "config", "a*", "[a-z]", "?", "x_LoRA", *HOSTILE])
def test_no_name_is_a_pattern_or_begins_the_name_of_another_file(reference: str, name: str) -> None:
    """ai-toolkit takes the newest file whose name begins with its own for its latest checkpoint."""
    plan = plan_of(reference, name=name)
    named = config_of(plan)["config"]["name"]
    checkpoint, model = f"{named}_000000250.safetensors", f"{named}.safetensors"
    found = [file for file in (*ITS_OTHER_FILES, checkpoint, model) if fnmatchcase(file, f"{named}*")]
    assert found == [checkpoint, model]
    assert [kind for kind in ITS_KINDS if kind in named and kind not in name] == []
    (train,) = [step for step in plan.steps if step.training]
    assert train.expect == (f"output/{named}/{model}",)
    assert plan.save is not None
    assert plan.save.proof == f"output/{named}/optimizer.pt", "written after the model"


@pytest.mark.parametrize("reference", RECIPES)
def test_the_trainer_and_its_scripts_share_their_places(reference: str) -> None:
    plan = plan_of(reference)
    process = config_of(plan)["config"]["process"][0]
    (train,) = [step for step in plan.steps if step.training]
    assert plan.save is not None
    assert plan.sample is not None
    database = f"--database={process['sqlite_db_path']}"
    assert [database in argv for argv in (train.argv, plan.save.argv, plan.sample.argv)] == [True] * 3
    assert f"--folder={process['training_folder']}/cat_flux" in train.argv
    assert f"--steps={process['train']['steps']}" in train.argv
    assert (process["type"], process["logging"]) == ("diffusion_trainer", {"use_ui_logger": True, "log_every": 1})


@pytest.mark.parametrize("reference", RECIPES)
@pytest.mark.parametrize(("resume", "state"), [(False, False), (True, False), (True, True)])
def test_a_checkpoint_and_its_state_are_put_where_ai_toolkit_looks(
    tmp_path: Path, reference: str, resume: bool, state: bool
) -> None:
    (tmp_path / "resume").mkdir()
    (tmp_path / "resume" / "checkpoint.safetensors").write_bytes(b"weights")
    (tmp_path / "resume" / "state").write_bytes(b"momentum")
    plan = plan_of(reference, tmp_path, name="My cat", resume=resume, state=state)
    (step,) = [step for step in plan.steps if step.name == "checkpoint"]
    for _ in range(2):
        subprocess.run(step.argv, check=True, env={"PATH": os.environ["PATH"]})
    folder = tmp_path / "output" / "My_cat_flux"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    weights = {"My_cat_flux_000001250.safetensors": b"weights"} if resume else {}
    assert found == weights | ({"optimizer.pt": b"momentum"} if state else {})


def test_a_further_try_keeps_what_the_one_before_has_saved(tmp_path: Path) -> None:
    (tmp_path / "resume").mkdir()
    (tmp_path / "resume" / "checkpoint.safetensors").write_bytes(b"weights")
    (tmp_path / "resume" / "state").write_bytes(b"momentum")
    (step,) = [
        step for step in plan_of("flux-lora@2", tmp_path, resume=True, state=True).steps if step.name == "checkpoint"
    ]
    folder = tmp_path / "output" / "cat_flux"
    folder.mkdir(parents=True)
    (folder / "optimizer.pt").write_bytes(b"newer momentum")
    subprocess.run(step.argv, check=True, env={"PATH": os.environ["PATH"]})
    assert (folder / "optimizer.pt").read_bytes() == b"newer momentum"


@pytest.mark.parametrize("reference", RECIPES)
def test_a_machine_needs_a_driver_for_the_image_s_cuda(reference: str) -> None:
    assert find(reference).recipe.needs.cuda == 13.0


def kontext_samples(root: Path, *, prompts: list[str], captions: dict[str, str]) -> list[dict[str, Any]]:
    """The samples in the config that sample_controls.py writes for pairs with these captions."""
    for folder in ("results", "control", "config", "work"):
        (root / folder).mkdir()
    for number, (name, caption) in enumerate(captions.items()):
        size = (300, 200) if number == 0 else (200, 300)
        (root / "control" / f"{name}.png").write_bytes(encoded(picture(size=size), "PNG"))
        (root / "results" / f"{name}.txt").write_text(caption, encoding="utf-8")
    sample = {"prompts": prompts, "width": 1024, "height": 1024}
    config = {"config": {"process": [{"trigger_word": "ohwx", "sample": sample}]}}
    given, written = root / "config" / "given.json", root / "work" / "written.json"
    given.write_text(json.dumps(config), encoding="utf-8")
    scripts = root / "recipe"
    scripts.mkdir()
    for name, file in find("flux-kontext-lora@2").shipped_files():
        shutil.copy(file, scripts / name)
    argv = [sys.executable, str(scripts / "sample_controls.py"), f"--trainer={root}"]
    argv += [f"--python={sys.executable}", f"--config={given}", f"--written={written}"]
    argv += [f"--results={root / 'results'}", f"--controls={root / 'control'}"]
    subprocess.run(argv, check=True, env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"})
    text = written.read_text(encoding="utf-8")
    assert "$" not in text, "ai-toolkit would put the environment's values in its place"
    found = json.loads(text)["config"]["process"][0]["sample"]
    assert "prompts" not in found
    samples: list[dict[str, Any]] = found["samples"]
    return samples


CAPTIONS = {"a": "make it night", "b": "[trigger] in the rain", "c": "as a ${HF_TOKEN} painting"}


def test_a_caption_as_prompt_gets_its_own_control_picture_others_the_first_ones(tmp_path: Path) -> None:
    prompts = ["something else", "ohwx in the rain", "ohwx, make it night", "[trigger] in the rain", "more"]
    samples = kontext_samples(tmp_path, prompts=prompts, captions=CAPTIONS)
    assert [sample["prompt"] for sample in samples] == prompts
    assert [Path(sample["ctrl_img"]).stem for sample in samples] == ["a", "b", "a", "b", "b"]


def test_without_prompts_the_first_captions_are_shown(tmp_path: Path) -> None:
    samples = kontext_samples(tmp_path, prompts=[], captions=CAPTIONS)
    assert [(sample["prompt"], Path(sample["ctrl_img"]).stem) for sample in samples] == [
        ("make it night", "a"),
        ("[trigger] in the rain", "b"),
    ]


def test_a_sample_has_the_proportions_of_its_control_picture(tmp_path: Path) -> None:
    """ai-toolkit stretches the control picture to the size of its sample."""
    wide, tall = kontext_samples(tmp_path, prompts=["x", "${HF_TOKEN}"], captions=CAPTIONS)
    assert (wide["width"], wide["height"]) == (1248, 832)
    assert (tall["width"], tall["height"]) == (832, 1248)
    assert tall["prompt"] == "${HF_TOKEN}"
