"""sdxl-lora: what sd-scripts is given, and what our own scripts prepare for it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.registry import find
from stationmaster.recipes.templating import evaluate
from tests.support.jobs.trainer_keys import KOHYA_DATASET, KOHYA_TRAINING, wrong_keys
from tests.unit.recipes.test_shipped_recipes import config_of, plan_of

RECIPE = find("sdxl-lora@2")
TRAINING, DATASET = "config/sdxl-lora-kohya.toml", "config/dataset.json"


def training(**given: Any) -> Any:
    return config_of(plan_of("sdxl-lora@2", **given), TRAINING)


@pytest.mark.parametrize("given", [{}, {"lora_dropout": 0.1, "batch_size": 2, "sample_prompts": ""}])
@pytest.mark.parametrize("resume", [False, True])
def test_every_key_is_one_that_sd_scripts_reads(given: dict[str, Any], resume: bool) -> None:
    plan = plan_of("sdxl-lora@2", resume=resume, **given)
    assert wrong_keys(config_of(plan, TRAINING), KOHYA_TRAINING) == []
    assert wrong_keys(config_of(plan, DATASET), KOHYA_DATASET) == []


@pytest.mark.parametrize("resolution", [256, 500, 1000, 1024, 1025, 1536, 2048])
def test_the_largest_bucket_is_never_below_the_resolution(resolution: int) -> None:
    dataset = config_of(plan_of("sdxl-lora@2", resolution=resolution), DATASET)
    largest = dataset["general"]["max_bucket_reso"]
    assert largest % 64 == 0
    assert max(1024, resolution) <= largest < max(1024, resolution) + 64
    assert dataset["datasets"][0]["resolution"] == resolution


@pytest.mark.parametrize("resolution", [256, 512, 1024, 2048])
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_by_default_five_minutes_lie_between_checkpoints(resolution: int, batch_size: int) -> None:
    given = resolve(RECIPE.recipe, {"resolution": resolution, "batch_size": batch_size})
    every = training(resolution=resolution, batch_size=batch_size)["save_every_n_steps"]
    seconds = every * evaluate(str(RECIPE.recipe.time.seconds_per_step), {"parameters": given})
    assert seconds <= 300 or every == 1
    assert seconds > 150, "no checkpoint is written without need"


def test_a_person_can_say_how_often_it_saves_and_how_much_is_kept() -> None:
    default = training()
    assert (default["save_every_n_steps"], default["save_last_n_steps"]) == (104, 4 * 104 - 1)
    asked = training(save_every=250, keep_saves=2)
    assert (asked["save_every_n_steps"], asked["save_last_n_steps"]) == (250, 499)


def test_without_prompts_no_samples_are_made() -> None:
    assert training()["sample_every_n_steps"] == 500
    assert [key for key in training(sample_prompts=" \n") if key.startswith("sample")] == []


def test_samples_and_checkpoints_are_found_by_the_names_that_sd_scripts_gives_them() -> None:
    checkpoint, sample = RECIPE.recipe.outputs
    assert checkpoint.step is not None
    assert sample.step is not None
    assert _step(checkpoint.step, "output/My_cat-step00000250.safetensors") == 250
    assert _step(sample.step, "output/sample/My_cat_000500_01_20261116084516_43.png") == 500
    assert _step(sample.step, "output/sample/cat_000001_01_000500_00_20261116084516.png") == 500


def _step(pattern: str, path: str) -> int | None:
    found = re.search(pattern, path)
    return int(found[1]) if found else None


def test_a_further_try_goes_on_from_the_newest_whole_state() -> None:
    (train,) = [step for step in plan_of("sdxl-lora@2").steps if step.training]
    assert train.again is not None
    assert train.again.pattern == "output/*-step*-state/random_states_0.pkl"
    assert train.again.argv[:2] == ("--resume=<again.folder>", "--skip_until_initial_step")
    assert train.again.argv[2].endswith("/work/dataset-again.json")


# The pictures ------------------------------------------------------------------------------------------------------


def prepared(root: Path, *, trigger: str = "ohwx", times: int = 1, **given: object) -> Plan:
    """The recipe's own step, run as the machine runs it."""
    plan = render_plan(
        RECIPE.recipe,
        parameters=resolve(RECIPE.recipe, {"python": sys.executable, **given}),
        job=JobIdentity(id="j", name="n", trigger=trigger, attempt=1),
        machine_root=str(root),
    )
    for config in plan.configs:
        (root / config.path).parent.mkdir(parents=True, exist_ok=True)
        (root / config.path).write_text(config.text, encoding="utf-8")
    (root / "recipe").mkdir(exist_ok=True)
    for name, file in RECIPE.shipped_files():
        (root / "recipe" / name).write_bytes(file.read_bytes())
    (root / "work").mkdir(exist_ok=True)
    (step,) = [step for step in plan.steps if step.name == "pictures"]
    for _ in range(times):
        subprocess.run(step.argv, check=True, cwd=root / "work", capture_output=True)
    return plan


def dataset(root: Path, **files: str) -> Path:
    folder = root / "dataset"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def captions(root: Path) -> dict[str, str]:
    return {file.name: file.read_text(encoding="utf-8") for file in sorted((root / "work/pictures").glob("*.txt"))}


def test_the_trigger_stands_where_the_caption_says_so(tmp_path: Path) -> None:
    root = tmp_path / "a job; $(touch broken)"
    folder = dataset(root, a__png="1", a__txt="[trigger] on a mat, a [trigger]", b__jpg="2", b__txt="a dog")
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
    prepared(root, trigger="ohwx; $(touch broken)", times=2)
    trigger = "ohwx; $(touch broken)"
    assert captions(root) == {"a.txt": f"{trigger} on a mat, a {trigger}\n", "b.txt": "a dog\n"}
    assert (root / "work/pictures/a.png").read_text() == "1"
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before


def test_without_a_trigger_the_placeholder_goes(tmp_path: Path) -> None:
    dataset(tmp_path, a__png="1", a__txt="[trigger] on a mat", b__png="2", b__txt="[trigger]")
    prepared(tmp_path, trigger="")
    assert captions(tmp_path) == {"a.txt": "on a mat\n"}, "sd-scripts stops at an empty caption"


def test_captions_come_out_as_sd_scripts_reads_them(tmp_path: Path) -> None:
    """It reads the first line of a .txt, and stops at an empty one."""
    dataset(tmp_path, a__png="1", a__txt="\ufeff\n a cat\n\n on a mat \n", b__png="2", b__caption="a dog", c__png="3")
    (tmp_path / "dataset/d.webp").write_text("4")
    (tmp_path / "dataset/d.txt").write_text("")
    prepared(tmp_path)
    assert captions(tmp_path) == {"a.txt": "a cat on a mat\n", "b.txt": "a dog\n", "c.txt": "ohwx\n", "d.txt": "ohwx\n"}


def test_pictures_of_the_same_name_do_not_share_a_cache(tmp_path: Path) -> None:
    dataset(tmp_path, a__jpg="1", a__png="2", a__txt="a cat")
    prepared(tmp_path, times=2)
    pictures = {file.name: file.read_text() for file in (tmp_path / "work/pictures").iterdir() if file.suffix != ".txt"}
    assert pictures == {"a.jpg": "1", "a.png.png": "2"}
    assert captions(tmp_path) == {"a.txt": "a cat\n", "a.png.txt": "a cat\n"}


def test_pictures_are_copied_where_they_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    folder = dataset(tmp_path, a__png="1")
    assert _script("pictures.py").prepare_pictures(folder, tmp_path / "out", "") == 1
    assert (tmp_path / "out/a.png").read_text() == "1"
    assert not (tmp_path / "out/a.png").samefile(folder / "a.png")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name.removesuffix(".py"), RECIPE.folder / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_prompt_is_a_sample_with_a_seed_of_its_own(tmp_path: Path) -> None:
    dataset(tmp_path, a__png="1")
    prepared(tmp_path, sample_prompts="[trigger] in a park --cn /etc/passwd\n\na [trigger]", seed=7)
    samples = json.loads((tmp_path / "work/samples.json").read_text())
    assert [(sample["prompt"], sample["seed"]) for sample in samples] == [
        ("ohwx in a park --cn /etc/passwd", 7),
        ("a ohwx", 8),
    ]
    assert {sample["width"] for sample in samples} == {1024}


@pytest.mark.parametrize(("steps", "batch_size", "repeats"), [(10, 1, 4), (9, 1, 3), (10, 4, 14), (1, 1, 1)])
def test_the_data_of_a_further_try_last_for_the_whole_training(
    tmp_path: Path, steps: int, batch_size: int, repeats: int
) -> None:
    dataset(tmp_path, a__png="1", b__png="2", c__png="3")
    prepared(tmp_path, steps=steps, batch_size=batch_size)
    first = json.loads((tmp_path / DATASET).read_text())
    again = json.loads((tmp_path / "work/dataset-again.json").read_text())
    assert again["datasets"][0]["subsets"][0].pop("num_repeats") == repeats
    assert first["datasets"][0]["subsets"][0].pop("num_repeats") == 1
    assert again == first


# The bootstrap -----------------------------------------------------------------------------------------------------

RELEASE = "ae72efb92babe89ff8e70f057e42db68440e8d61"
"""The commit of v0.10.1."""
GIT = """#!/bin/sh
case "$3" in
  fetch) echo "git $*" >> {calls};;
  checkout) printf 'numpy\\nopencv-python==4.10.0.84\\n-e .\\n' > "$2/requirements.txt"
    touch "$2/sdxl_train_network.py"; echo "${{6}}" > "$2/commit";;
  *) mkdir -p "$3";;
esac
"""
PYTHON = """#!/bin/sh
case "$*" in
  *sys.exit*) exit {has_no_torch};;
  *print*) echo torch==2.6.0+cu124;;
  *) echo "$*" >> {calls}; if [ -f {refuses} ]; then rm {refuses}; exit 1; fi;;
esac
"""


class Machine:
    """A machine with its own git and Python, which only write down what they are asked for."""

    def __init__(self, folder: Path, *, has_torch: bool = True) -> None:
        self.trainer, self.calls, self.refuses = folder / "sd scripts", folder / "calls", folder / "refuses"
        tools = folder / "bin"
        tools.mkdir()
        places = {"calls": self.calls, "refuses": self.refuses, "has_no_torch": int(not has_torch)}
        for name, text in (("git", GIT), ("python", PYTHON)):
            (tools / name).write_text(text.format(**places))
            (tools / name).chmod(stat.S_IRWXU)
        self.environ = {"PATH": f"{tools}:{os.environ['PATH']}"}
        (self.step,) = [
            step
            for step in plan_of("sdxl-lora@2", trainer=str(self.trainer), python=str(tools / "python")).steps
            if step.name == "trainer"
        ]

    def bootstrap(self) -> int:
        return subprocess.run(self.step.argv, env={**self.environ, **self.step.env}, capture_output=True).returncode

    def asked(self) -> list[str]:
        asked = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return asked


def test_the_bootstrap_fetches_the_release_and_what_it_needs_beside_the_torch_that_is_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.bootstrap() == 0
    git, pip = machine.asked()
    assert f"https://github.com/kohya-ss/sd-scripts.git {RELEASE}" in git
    assert (machine.trainer / "commit").read_text() == f"{RELEASE}\n"
    assert pip == "-m pip install -c .constraints torchvision -r .requirements"
    constraints = ["torch==2.6.0+cu124", "bitsandbytes==0.50.2", "numpy==2.2.6", "tensorboard==2.21.0"]
    assert (machine.trainer / ".constraints").read_text().splitlines() == constraints
    assert (machine.trainer / ".requirements").read_text() == "numpy\nopencv-python-headless==4.10.0.84\n"
    assert machine.bootstrap() == 0
    assert machine.asked() == [], "a second job finds it ready"


def test_a_bootstrap_that_was_cut_off_is_completed_by_the_next_try(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.refuses.touch()
    assert machine.bootstrap() != 0
    machine.asked()
    assert machine.bootstrap() == 0
    assert machine.asked() == ["-m pip install -c .constraints torchvision -r .requirements"]


def test_torch_is_installed_where_there_is_none(tmp_path: Path) -> None:
    machine = Machine(tmp_path, has_torch=False)
    assert machine.bootstrap() == 0
    assert machine.asked()[1] == "-m pip install torch==2.8.0 torchvision==0.23.0"
