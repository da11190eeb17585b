"""tiny-lora@1 trained for real: it learns, saves, resumes, and prints what ai-toolkit prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file

from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
from stationmaster.recipes.registry import find
from tests.support.jobs.tiny_lora_runs import TRAINER, saved, train, write_images

LOSS = re.compile(r"(\d+)/(\d+) \[\S+, +\S+, lr: 1\.0e-02 loss: (\d\.\d{3}e[+-]\d\d)\]")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images")


@pytest.fixture(scope="module")
def finished(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One whole run of 60 steps: its output folder and its log."""
    output = tmp_path_factory.mktemp("run") / "output"
    run = train(dataset, output, "--sample-every=30")
    assert run.returncode == 0, run.stdout
    return output, run.stdout


def test_the_last_loss_is_less_than_half_of_the_first(finished: tuple[Path, str]) -> None:
    losses = [float(loss) for _, _, loss in LOSS.findall(finished[1])]
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("options", [("--seed=1", "--batch-size=1"), ("--seed=2", "--resolution=32"), ("--rank=16",)])
def test_it_learns_with_other_settings_too(dataset: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    run = train(dataset, tmp_path / "output", *options)
    losses = [float(loss) for _, _, loss in LOSS.findall(run.stdout)]
    assert losses[-1] < losses[0] / 2


def test_the_log_reads_like_that_of_ai_toolkit(finished: tuple[Path, str]) -> None:
    output, log = finished
    in_order = [
        "Running 1 job\n",
        "create LoRA network. base dim (rank): 8, alpha: 8\n",
        "  -  Found 12 images\n",
        "48x48: 12 files\n1 buckets made\n",
        "Generating baseline samples before training\n",
        "\rGenerating Images:   0%|          | 0/4 [00:00<?, ?it/s]",
        "\rdemo:   0%|          | 0/60 [00:00<?, ?it/s]",
        "\rdemo:   0%|          | 0/60 [00:00<?, ?it/s, lr: 1.0e-02 loss: ",
        "\rdemo:  33%|███▎      | 20/60 [00:0",
        f"\nSaving at step 20\nSaved checkpoint to {output}/demo_000000020.safetensors\n",
        "\rdemo: 100%|██████████| 60/60 [00:0",
        f"\n\nSaving at step 60\nSaved checkpoint to {output}/demo.safetensors\n",
        f"\n{'=' * 40}\nResult:\n - 1 completed job\n{'=' * 40}\n",
    ]
    at = 0
    for text in in_order:
        at = log.find(text, at)
        assert at >= 0, text


def test_checkpoints_are_safetensors_with_step_epoch_and_loss(finished: tuple[Path, str]) -> None:
    output, _ = finished
    assert saved(output) == ["demo.safetensors", "demo_000000020.safetensors", "demo_000000040.safetensors"]
    for name, step in (("demo_000000020", 20), ("demo_000000040", 40), ("demo", 60)):
        with safe_open(output / f"{name}.safetensors", framework="numpy") as file:
            assert {"lora_A.weight", "lora_B.weight"} <= set(file.keys())
            assert file.get_tensor("lora_A.weight").shape == (8, 80)
            info = json.loads(file.metadata()["training_info"])
            assert info == {"step": step, "epoch": step * 4 // 12}
            assert 0 < float(file.metadata()["loss"]) < 1


def test_the_loss_in_the_header_can_be_computed_again(finished: tuple[Path, str], dataset: Path) -> None:
    output, _ = finished
    for path in output.glob("*.safetensors"):
        asked = [sys.executable, "-B", str(TRAINER), f"--evaluate={path}", f"--dataset={dataset}"]
        answer = json.loads(subprocess.run(asked, capture_output=True, check=True, timeout=150).stdout)
        with safe_open(path, framework="numpy") as file:
            assert answer["loss"] == pytest.approx(float(file.metadata()["loss"]), rel=1e-9)


def test_samples_come_closer_to_the_originals(finished: tuple[Path, str]) -> None:
    output, _ = finished
    distances = [_mean_distance(output / "samples", step) for step in (0, 30, 60)]
    assert distances[0] / 2 > distances[1] > distances[2]


def test_a_resumed_run_ends_with_the_same_parameters_as_an_uninterrupted_one(
    finished: tuple[Path, str], dataset: Path, tmp_path: Path
) -> None:
    whole, _ = finished
    run = train(dataset, tmp_path / "other", f"--resume={whole / 'demo_000000020.safetensors'}")
    assert "Found step 20 in metadata, starting from there\n" in run.stdout
    first, second = load_file(whole / "demo.safetensors"), load_file(tmp_path / "other" / "demo.safetensors")
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_checkpoint_of_another_rank_is_refused(finished: tuple[Path, str], dataset: Path, tmp_path: Path) -> None:
    checkpoint = finished[0] / "demo_000000020.safetensors"
    run = train(dataset, tmp_path / "output", f"--resume={checkpoint}", "--rank=4")
    assert run.returncode == 1
    assert "Error running job: " in run.stdout
    assert "was trained as" in run.stdout


def test_only_so_many_old_checkpoints_are_kept(dataset: Path, tmp_path: Path) -> None:
    run = train(dataset, tmp_path / "output", "--save-every=10", "--keep-saves=2", "--sample-every=1000")
    assert saved(tmp_path / "output") == [
        "demo.safetensors",
        "demo_000000040.safetensors",
        "demo_000000050.safetensors",
    ]
    assert run.stdout.count("Removing old save: ") == 3


def test_captions_change_what_is_learnt(dataset: Path, tmp_path: Path) -> None:
    silent = write_images(tmp_path / "silent")
    for caption in silent.glob("*.txt"):
        caption.unlink()
    train(dataset, tmp_path / "a")
    train(silent, tmp_path / "b")
    with_captions, without = (load_file(tmp_path / name / "demo.safetensors") for name in ("a", "b"))
    assert not np.array_equal(with_captions["lora_B.weight"], without["lora_B.weight"])


def test_a_folder_without_pictures_fails_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    run = train(tmp_path / "empty", tmp_path / "output")
    assert run.returncode == 1
    assert "Error running job: no pictures" in run.stdout
    assert " - 1 failure\n" in run.stdout


def test_a_python_without_numpy_is_told_so(tmp_path: Path) -> None:
    bare = [sys.executable, "-I", "-S", "-B", "-c"]  # no site-packages: neither NumPy nor Pillow
    script = f"import sys, runpy; sys.path.insert(0, {str(TRAINER.parent)!r}); sys.argv = ['train.py', '--check']; "
    run = subprocess.run(
        [*bare, script + f"runpy.run_path({str(TRAINER)!r}, run_name='__main__')"], capture_output=True, text=True
    )
    assert run.returncode == 3
    assert "No module named 'numpy'" in run.stderr
    assert "pip install numpy pillow" in run.stderr


def test_the_rendered_plan_runs_as_it_stands(dataset: Path, tmp_path: Path) -> None:
    stored, root = find("tiny-lora@1"), tmp_path / "job"
    for folder in ("recipe", "work", "output"):
        (root / folder).mkdir(parents=True)
    for name, source in stored.shipped_files():
        (root / "recipe" / name).write_bytes(source.read_bytes())
    (root / "dataset").symlink_to(dataset)
    given = {"steps": 10, "seconds_per_step": 0, "python": sys.executable}
    plan = render_plan(
        stored.recipe,
        parameters=resolve(stored.recipe, given),
        job=JobIdentity(id="j1", name="../x; $(touch pwned) [é]", trigger="-\"s'k\ns", attempt=1),
        machine_root=str(root),
    ).as_json()
    for step in plan["steps"]:
        subprocess.run(step["argv"], cwd=root / step["cwd"], env=step["env"], check=True, timeout=150)
        assert all(list(root.glob(pattern)) for pattern in step["expect"])
    assert saved(root / "output") == ["x_touch_pwned_é.safetensors"]
    assert not list(tmp_path.rglob("pwned"))


def _mean_distance(folder: Path, step: int) -> float:
    """How far the right half of a step's samples is from the left one, on average."""
    pictures = [np.asarray(Image.open(path), dtype=float) for path in folder.glob(f"*__{step:09d}_*.png")]
    assert len(pictures) == 4
    halves = [np.split(picture, 2, axis=1) for picture in pictures]
    return float(np.mean([np.mean((left - right) ** 2) for left, right in halves]))
