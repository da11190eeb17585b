"""sdxl-lora with the real sd-scripts: whole runs, large pictures, a stop, a second try, resume."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Outcome
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.recipes.places import BUILTIN
from tests.support.commands.cli_runs import Home
from tests.support.jobs.dataset_pictures import encoded, good_set, picture
from tests.support.waiting import until
from tests.trainers.changed_recipes import changed_recipe
from tests.trainers.conftest import Trainer
from tests.trainers.recorded_at_home import recorded

pytestmark = [pytest.mark.trainer("SD_SCRIPTS"), pytest.mark.timeout(1200)]

PATIENCE_SECONDS = 600.0
# The width and depth of the UNet are numbers in sd-scripts' source; ours are those of tiny_sdxl.py.
UNET = "library/sdxl_original_unet.py"
SMALLER = (
    ("MODEL_CHANNELS: int = 320", "MODEL_CHANNELS: int = 32"),
    ("TIME_EMBED_DIM = 320 * 4", "TIME_EMBED_DIM = 32 * 4"),
    ("num_transformer_layers=2,", "num_transformer_layers=1,"),
    ("num_transformer_layers=10,", "num_transformer_layers=1,"),
)


@pytest.fixture(scope="session")
def tiny_sdxl(sd_scripts: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    subprocess.run([sd_scripts.python, Path(__file__).with_name("tiny_sdxl.py"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def narrow(sd_scripts: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the trainer whose UNet fits the tiny weights; as the bootstrap leaves one, ready to be used."""
    assert sd_scripts.folder is not None
    copy = tmp_path_factory.mktemp("trainer") / "sd-scripts"
    shutil.copytree(sd_scripts.folder, copy, ignore=shutil.ignore_patterns(".git", "__pycache__"))
    source = (copy / UNET).read_text(encoding="utf-8")
    for there, here in SMALLER:
        assert there in source
        source = source.replace(there, here)
    (copy / UNET).write_text(source, encoding="utf-8")
    (copy / ".ready").touch()
    return copy


@pytest.fixture
def train(home: Home, sd_scripts: Trainer, narrow: Path, tiny_sdxl: Path, tmp_path: Path) -> Callable[..., None]:
    """Start a job on this computer; the dataset lies in `tmp_path / "pictures"`."""

    def on_a_cpu(said: dict[str, Any]) -> None:
        """What a computer without a GPU cannot do is changed, and what would take it minutes is made small."""
        said["needs"] = {"gpus": 0, "disk_gib": 1}
        said["health"]["argv"][-1] = "cpu"
        said["launcher_argv"] = ["--mixed_precision=no", "--dynamo_backend=no", "--cpu"]  # a CPU emulates bf16, slowly
        configs = {config["path"]: config["data"] for config in said["configs"]}
        configs["sdxl-lora-kohya.toml"].update(
            mixed_precision="no",
            optimizer_type="AdamW",  # the 8-bit one works here too, but takes half a minute a step
            tokenizer_cache_dir=str(tiny_sdxl / "tokenizers"),
        )
        configs["pictures.json"]["samples"].update(width=64, height=64, sample_steps=2)
        training = said["steps"][-1]
        training["env"]["OMP_NUM_THREADS"] = "1"  # threads that wait for each other on busy cores
        training["backoff"] = ["1s"]

    changed_recipe("sdxl-lora", tmp_path / "recipes", on_a_cpu)

    def start(name: str, *more: str, steps: int) -> None:
        given = {"base_model": tiny_sdxl / "model", "trainer": narrow, "python": sd_scripts.python}
        options = [word for key, value in {**given, "rank": 4}.items() for word in ("-p", f"{key}={value}")]
        what = ("--recipe", "sdxl-lora@2", "--dataset", str(tmp_path / "pictures"), "--name", name)
        where = ("--trigger", "smland", "--provider", "loopback", "--id", name, "--yes", "--json")
        ran = home.run("train", *what, *where, "--steps", str(steps), *options, *more)
        assert ran.code == 0, ran.err

    return start


def test_a_whole_run_with_a_trigger_in_a_caption_and_samples(
    home: Home, train: Callable[..., None], tmp_path: Path
) -> None:
    dataset = good_set(tmp_path / "pictures")
    caption = min(dataset.glob("*.txt"))
    caption.write_text("[trigger] at the harbour\nwith a second line\n")
    min(path for path in dataset.glob("*.txt") if path != caption).write_text("")  # would stop sd-scripts
    options = ("resolution=256", "save_every=4", "keep_saves=2", "sample_every=6")
    train("cat", *parameters(*options, "sample_prompts=[trigger] at night\nin the rain"), steps=13)
    wait_for_end(home, "cat", Outcome.COMPLETED)

    models, samples = files_of(home, "cat", "*.safetensors"), files_of(home, "cat", "*.png")
    assert sampled_steps(samples) == {6: 2, 12: 2}
    known = metadata(models["cat.safetensors"])
    (tags,) = json.loads(known["ss_tag_frequency"]).values()
    assert "smland at the harbour with a second line" in tags
    assert "smland" in tags, "the picture with an empty caption"
    assert not [tag for tag in tags if "[trigger]" in tag]
    assert (known["ss_steps"], known["ss_optimizer"].partition("(")[0]) == ("13", "torch.optim.adamw.AdamW")

    log = log_of(home, "cat")
    assert "prompt: smland at night" in log
    assert re.findall(r"saving checkpoint: \S+/cat(\S*)\.safetensors", log) == [
        *("-step00000004", "-step00000008", "-step00000012", "")
    ]
    assert re.findall(r"removing old checkpoint: \S+-step(\d+)", log) == ["00000004"], "two are kept"
    assert re.findall(r"removing old state: \S+-step(\d+)", log) == ["00000004", "00000008"], "the last is kept"
    long = "caching Text Encoder outputs with caching strategy."
    assert long in log.splitlines(), "its log is neither wrapped nor set in columns"
    progress = home.job("cat").progress
    assert (progress.step, progress.total_steps, progress.epoch) == (13, 13, 2)
    told = [event.payload["epoch"] for event in home.store.events.of_job("cat") if event.kind == "epoch_ended"]
    assert told == [1], "the second epoch had begun"
    check_recorded(home, "cat", log)


def check_recorded(home: Home, job_id: str, log: str) -> None:
    """Each step with its own loss, of which the bar shows the average, and a time; saves and samples as events."""
    found = recorded(home, job_id)
    assert list(found.steps) == list(range(1, 14))
    losses = [row["loss"] for row in found.steps.values()]
    shown = re.findall(r"13/13 \[[^\]]*avr_loss=([\d.]+)\]", log)[-1]
    # The average is that of the last epoch's length: of ten pictures.
    assert sum(losses[-10:]) / 10 == pytest.approx(float(shown), rel=0.01)
    assert all(row["gradient_norm"] > 0 for row in found.steps.values())
    assert {(row["batch_size"], row["learning_rate"]) for row in found.steps.values()} == {(1, 1e-4)}
    assert all(0 < row["step_time_seconds"] < 60 for step, row in found.steps.items() if step > 1)
    starts = [event for event in found.events if event[0] in ("save_start", "sampling_start")]
    both = ["save_start", "save_start"]  # the model, and the trainer's state
    assert starts == [
        *((kind, 4) for kind in both), ("sampling_start", 6), *((kind, 8) for kind in both), ("sampling_start", 12),
        *((kind, 12) for kind in both), *((kind, 13) for kind in both),
    ]  # fmt: skip
    assert (found.events[0], found.events[-1]) == (("training_start", 0), ("training_end", 13))


def test_pictures_larger_than_1024_are_trained(home: Home, train: Callable[..., None], tmp_path: Path) -> None:
    dataset = good_set(tmp_path / "pictures")
    large = min(dataset.glob("*.png"))
    large.write_bytes(encoded(picture(size=(1440, 1280), seed=7), "PNG"))
    train("large", *parameters("resolution=1100", "sample_prompts="), steps=1)
    wait_for_end(home, "large", Outcome.COMPLETED)
    (dataset_read,) = json.loads(metadata(files_of(home, "large", "*.safetensors")["large.safetensors"])["ss_datasets"])
    assert dataset_read["max_bucket_reso"] == 1152
    sides = [bucket["resolution"] for bucket in dataset_read["bucket_info"]["buckets"].values()]
    assert max(map(max, sides)) > 1024
    assert files_of(home, "large", "*.png") == {}


def test_a_stop_keeps_the_newest_checkpoint_and_another_job_goes_on_from_it(
    home: Home, train: Callable[..., None], tmp_path: Path
) -> None:
    good_set(tmp_path / "pictures")
    train("tin", *parameters("resolution=256", "save_every=2", "sample_prompts="), steps=30)
    until(lambda: home.has_checkpoint("tin"), "a checkpoint", seconds=PATIENCE_SECONDS)
    stopped = home.run("stop", "tin", "--json")
    assert stopped.code == 0, stopped.err
    wait_for_end(home, "tin", Outcome.INCOMPLETE)
    saved = max(int(step) for step in re.findall(r"saving checkpoint: \S+-step(\d{8})", log_of(home, "tin")))
    steps = [int(name[-20:-12]) for name in files_of(home, "tin", "*.safetensors")]
    assert max(steps) in (saved, saved - 2), "the newest, or the one before if it was being written"

    again = home.run("retry", "tin", "--resume", "--id", "again", "--yes", "--json")
    assert again.code == 0, again.err
    wait_for_end(home, "again", Outcome.COMPLETED)
    assert "load network weights from" in log_of(home, "again")
    assert f"total optimization steps / 学習ステップ数: {30 - max(steps)}\n" in log_of(home, "again")
    progress = home.job("again").progress
    assert (progress.step, progress.total_steps) == (30, 30)
    assert min(reading.step for reading in home.store.readings.of_job("again")) >= max(steps)
    assert list(recorded(home, "again").steps) == list(range(max(steps) + 1, 31)), "as the whole training counts"


def test_a_killed_trainer_goes_on_from_its_state_on_the_second_try(
    home: Home, train: Callable[..., None], tmp_path: Path
) -> None:
    """Ten pictures, five in a step: several epochs are over when it is killed."""
    good_set(tmp_path / "pictures")
    train("sam", *parameters("resolution=256", "batch_size=5", "save_every=3", "sample_prompts="), steps=11)
    pid = until(lambda: trainer_of(home) if latest(home, "sam") >= 6 else None, "step 6", seconds=PATIENCE_SECONDS)
    unfinished = next((home.path / "machines").glob("*/jobs/sam/output")) / "sam-step00000099-state"
    unfinished.mkdir()
    (unfinished / "train_state.json").write_text("{}")  # as if it had been killed while it saved a state
    os.kill(pid, signal.SIGKILL)
    wait_for_end(home, "sam", Outcome.COMPLETED)

    log = log_of(home, "sam")
    (state,) = re.findall(r"resume training from local state: \S*-step(\d{8})-state", log)
    assert int(state) in (6, 9)
    assert f"skipping {int(state)} steps / " in log
    second = log.partition("resume training from local state")[2]
    left = [step for step in (9, 11) if step > int(state)]
    saved = [int(step) for step in re.findall(r"saving state at step (\d+)", second)]
    assert saved == [step for step in left if step % 3 == 0], "numbered by the step of the whole training"
    assert f"| {11 - int(state)}/{11 - int(state)} [" in second, "no step too many"
    progress = home.job("sam").progress
    assert (progress.step, progress.total_steps) == (11, 11)
    assert {reading.step for reading in home.store.readings.of_job("sam")} >= {int(state) + 1, 11}
    assert list(recorded(home, "sam").steps) == list(range(1, 12)), "those of the first try too"
    assert metadata(files_of(home, "sam", "*.safetensors")["sam.safetensors"])["ss_steps"] == "11"
    tries = [event.payload for event in home.store.events.of_job("sam") if event.kind == "step"]
    assert [one["try"] for one in tries if (one["step"], one["state"]) == ("train", "done")] == [2]


def test_the_health_check_wants_a_gpu_and_every_package(sd_scripts: Trainer, tmp_path: Path) -> None:
    (tmp_path / "torchvision.py").write_text("raise ImportError('no torchvision here')\n")
    assert health(sd_scripts, "cpu").returncode == 0
    assert "CUDA" in health(sd_scripts, "cuda", CUDA_VISIBLE_DEVICES="").stderr
    assert "no torchvision here" in health(sd_scripts, "cpu", PYTHONPATH=str(tmp_path)).stderr


def health(trainer: Trainer, device: str, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [trainer.python, str(BUILTIN / "sdxl-lora" / "health.py"), str(trainer.folder), device]
    written = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environ}
    return subprocess.run(argv, env=written, capture_output=True, text=True, check=False)


def parameters(*given: str) -> tuple[str, ...]:
    return tuple(word for one in given for word in ("-p", one))


def wait_for_end(home: Home, job_id: str, outcome: Outcome) -> None:
    def story() -> str:
        return log_of(home, job_id)[-4000:]

    until(lambda: home.job(job_id).outcome, f"the end of {job_id}", seconds=PATIENCE_SECONDS, story=story)
    assert home.job(job_id).outcome is outcome, story()


def log_of(home: Home, job_id: str) -> str:
    return b"".join(home.store.logs.text(job_id)).decode("utf-8", "replace")


def files_of(home: Home, job_id: str, pattern: str) -> dict[str, Path]:
    """What was brought home, by name."""
    return {path.name: path for path in (home.path / "jobs" / job_id / "files").rglob(pattern) if path.is_file()}


def metadata(model: Path) -> dict[str, str]:
    """What sd-scripts writes into a model about its training."""
    with model.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(length))
    return dict(header["__metadata__"])


def sampled_steps(samples: dict[str, Path]) -> dict[int, int]:
    """How many samples there are of each step."""
    steps = [int(found[1]) for name in samples if (found := re.search(r"_(\d{6})_\d\d_\d{14}_\d+\.png$", name))]
    return {step: steps.count(step) for step in sorted(set(steps))}


def latest(home: Home, job_id: str) -> int:
    return max((one.step or 0 for one in home.store.checkpoints.of_job(job_id)), default=0)


def trainer_of(home: Home) -> int | None:
    """The process that is sd-scripts itself: accelerate's child, whose own children load the pictures."""
    (machine,) = (home.path / "machines").iterdir()
    launchers = [pid for pid in processes_of(machine.name) if b"accelerate.commands.launch" in _command(pid)]
    for pid in processes_of(machine.name):
        status = Path(f"/proc/{pid}/status").read_text()
        if b"/sdxl_train_network.py" in _command(pid) and any(f"PPid:\t{one}\n" in status for one in launchers):
            return pid
    return None


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
