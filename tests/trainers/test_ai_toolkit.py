"""The FLUX recipes with the real ai-toolkit: whole runs, stop, samples on request, a second try, resume."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Outcome
from stationmaster.parsers.reader import LogReader
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.registry import find
from tests.support.commands.cli_runs import Home
from tests.support.jobs.dataset_pictures import encoded, good_set, picture
from tests.support.waiting import until
from tests.trainers.changed_recipes import changed_recipe
from tests.trainers.conftest import Trainer
from tests.trainers.recorded_at_home import recorded

pytestmark = [pytest.mark.trainer("AI_TOOLKIT"), pytest.mark.timeout(1200)]

PATIENCE_SECONDS = 600.0
PROMPTS = "[trigger] at night\nsmland in the rain"


@pytest.fixture(scope="session")
def tiny_flux(ai_toolkit: Trainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights") / "tiny-flux"
    subprocess.run([ai_toolkit.python, Path(__file__).with_name("tiny_flux.py"), folder], check=True)
    return folder


@pytest.fixture
def train(home: Home, ai_toolkit: Trainer, tiny_flux: Path, tmp_path: Path) -> Callable[..., None]:
    """Start a job on this computer."""
    home.environ["HF_READ_TOKEN"] = "hf_not_needed"

    def start(recipe: str, name: str, *more: str, steps: int) -> None:
        changed_recipe(recipe, tmp_path / "recipes", on_a_cpu)
        dataset = good_set(tmp_path / "pictures")
        if recipe == "flux-kontext-lora":
            write_controls(dataset)
        given = {
            "base_model": tiny_flux,
            "trainer": ai_toolkit.folder,
            "python": ai_toolkit.python,
            "sample_prompts": PROMPTS,
            "largest_resolution": 512,
        }
        options = [word for key, value in given.items() for word in ("-p", f"{key}={value}")]
        what = ("--recipe", f"{recipe}@2", "--dataset", str(dataset), "--name", name, "--trigger", "smland")
        where = ("--provider", "loopback", "--id", name, "--steps", str(steps), "--yes", "--json")
        ran = home.run("train", *what, *where, *options, *more)
        assert ran.code == 0, ran.err

    return start


def on_a_cpu(said: dict[str, Any]) -> None:
    """What a computer without a GPU cannot do is left out of a recipe, and what would take it minutes is made small."""
    said["needs"] = {"gpus": 0, "disk_gib": 1}
    del said["gated"]
    said["health"]["argv"][-1] = "--device=cpu"
    (process,) = said["configs"][0]["data"]["config"]["process"]
    process["device"] = "cpu"
    process["train"]["dtype"] = "float32"  # a CPU emulates bf16, thirty times slower
    process["sample"].update(width=64, height=64, sample_steps=2)
    training = said["steps"][-1]
    training["env"]["OMP_NUM_THREADS"] = "1"  # threads that wait for each other on busy cores
    training["backoff"] = ["1s"]


def write_controls(dataset: Path) -> None:
    """For each picture the one that it was made from, in other proportions."""
    (dataset / "control").mkdir()
    for number, path in enumerate(sorted(dataset.glob("*.png"))):
        (dataset / "control" / path.name).write_bytes(encoded(picture(size=(384, 256), seed=number), "PNG"))


@pytest.mark.parametrize("recipe", ["flux-lora", "flux-kontext-lora"])
def test_a_whole_run_under_a_name_that_begins_a_file_s(home: Home, train: Callable[..., None], recipe: str) -> None:
    """`con` begins config.yaml, which ai-toolkit writes into the same folder before it looks for its checkpoints."""
    train(recipe, "con", "-p", "save_every=3", "-p", "sample_every=4", steps=8)
    drawn: dict[int, float] = {}
    wait_for_end(home, "con", Outcome.COMPLETED, meanwhile=lambda: drawn.update(drawn_losses(home)))
    at_home = files_of(home, "con")
    assert "con_flux.safetensors" in at_home
    assert sampled_steps(at_home) == {4: 2, 8: 2}
    phases = iter(phases_of(f"{recipe}@2", log_of(home, "con")))
    for phase in ("loading", "caching", "training", "saving", "training", "sampling", "training", "finished"):
        assert phase in phases, f"{phase} is missing, or not in its place"
    progress = home.job("con").progress
    assert (progress.step, progress.total_steps, progress.learning_rate) == (8, 8, 1e-4)
    assert progress.phase == "finished"
    readings = {reading.step: reading.loss for reading in home.store.readings.of_job("con")}
    assert set(range(2, 9)) <= set(readings), "ai-toolkit logs no loss of the very first step"
    assert {step: readings[step] for step in range(2, 9)} == {
        step: pytest.approx(drawn[step], rel=1e-3) for step in range(2, 9)
    }
    check_recorded(home, "con", drawn)


def check_recorded(home: Home, job_id: str, drawn: dict[int, float]) -> None:
    """Each step with the loss that the bar showed and a time without saves and samples; those as events."""
    found = recorded(home, job_id)
    assert {step: row["loss"] for step, row in found.steps.items()} == {
        step: pytest.approx(drawn[step], rel=1e-3) for step in range(2, 9)
    }
    assert {(row["batch_size"], row["learning_rate"]) for row in found.steps.values()} == {(1, 1e-4)}
    times = [row["step_time_seconds"] for step, row in found.steps.items() if step > 2]
    assert all(0 < seconds < 30 for seconds in times), times
    assert [event for event in found.events if event[0] == "sampling_start"] == [
        *(("sampling_start", 4), ("sampling_start", 8))
    ]
    assert {("save_start", 3), ("save_end", 3), ("save_start", 6), ("save_end", 6)} <= set(found.events)
    assert found.events[0] == ("training_start", 0)
    assert found.events[-2:] == [("sampling_end", 8), ("training_end", 8)]


@pytest.mark.parametrize("recipe", ["flux-lora", "flux-kontext-lora"])
def test_samples_now_then_a_stop_that_saves_first_then_resume(
    home: Home, train: Callable[..., None], recipe: str
) -> None:
    """`opt` begins optimizer.pt, which lies beside the checkpoint that it goes on from."""
    saved = sampled_and_stopped(home, train, recipe, "opt")
    again = home.run("retry", "opt", "--resume", "--id", "again", "--yes", "--json")
    assert again.code == 0, again.err
    until(lambda: (home.job("again").progress.step or 0) > saved + 1, "further steps", seconds=PATIENCE_SECONDS)
    stop(home, "again")
    log = log_of(home, "again")
    assert f"Found step {saved} in metadata, starting from there" in log
    assert "Loading optimizer state from" in log
    assert "Failed to load optimizer" not in log
    assert min(reading.step for reading in home.store.readings.of_job("again")) >= saved
    assert saved_step(home, "again") > saved + 1


def test_a_killed_trainer_goes_on_from_its_checkpoint_on_the_second_try(home: Home, train: Callable[..., None]) -> None:
    """`sam` begins samples, a folder that lies beside the checkpoints by then."""
    train("flux-lora", "sam", "-p", "save_every=4", "-p", "sample_every=4", steps=16)
    pid = until(lambda: trainer_of(home) if home.has_checkpoint("sam") else None, "a save", seconds=PATIENCE_SECONDS)
    os.kill(pid, signal.SIGKILL)
    wait_for_end(home, "sam", Outcome.COMPLETED)
    tries = [event.payload for event in home.store.events.of_job("sam") if event.kind == "step"]
    assert [one["try"] for one in tries if (one["step"], one["state"]) == ("train", "done")] == [2]
    log = log_of(home, "sam")
    (resumed,) = re.findall(r"RESUMING FROM \S*/(\S+) ", log)
    step = re.fullmatch(r"sam_flux_(\d{9})\.safetensors", resumed)
    assert step is not None
    assert f"Found step {int(step[1])} in metadata" in log
    assert "Loading optimizer state from" in log
    assert home.job("sam").progress.step == 16


@pytest.mark.parametrize("missing", ["torchvision", "torchaudio"])
def test_the_health_check_finds_a_package_that_is_missing(ai_toolkit: Trainer, tmp_path: Path, missing: str) -> None:
    (tmp_path / f"{missing}.py").write_text(f"raise ImportError('no {missing} here')\n")
    ran = health(ai_toolkit, "cpu", PYTHONPATH=str(tmp_path))
    assert ran.returncode == 1
    assert f"no {missing} here" in ran.stderr


def test_the_health_check_wants_a_gpu(ai_toolkit: Trainer) -> None:
    ran = health(ai_toolkit, "cuda:0", CUDA_VISIBLE_DEVICES="")
    assert ran.returncode == 1
    assert "CUDA" in ran.stderr


def health(ai_toolkit: Trainer, device: str, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(BUILTIN / "flux-lora" / "health.py")]
    argv += [f"--trainer={ai_toolkit.folder}", f"--python={ai_toolkit.python}", f"--device={device}"]
    return subprocess.run(argv, env={**os.environ, **environ}, capture_output=True, text=True, check=False)


def sampled_and_stopped(home: Home, train: Callable[..., None], recipe: str, name: str) -> int:
    """The step that a training was stopped at, after it was asked for samples; by itself it would have saved none."""
    train(recipe, name, "-p", "save_every=5000", "-p", "sample_every=5000", steps=5000)
    until(lambda: home.job(name).progress.step, "its first step", seconds=PATIENCE_SECONDS)
    asked = home.run("sample", name, "--wait", "--json")
    assert (asked.code, asked.err) == (0, "")
    before = home.job(name).progress.step or 0
    stop(home, name)
    saved = saved_step(home, name)
    assert saved >= before, "the newest step, not an earlier one"
    assert f"Saving at step {saved}" in log_of(home, name)
    at_home = files_of(home, name)
    assert f"{name}_flux_{saved:09d}.safetensors" in at_home
    assert list(sampled_steps(at_home).values()) == [2]
    return saved


def stop(home: Home, job_id: str) -> None:
    """End a training; it has saved before."""
    stopped = home.run("stop", job_id, "--json")
    assert stopped.code == 0, stopped.err
    wait_for_end(home, job_id, Outcome.INCOMPLETE)
    (told,) = [event.payload for event in home.store.events.of_job(job_id) if event.kind == "save_ended"]
    assert told["state"] == "saved"


def saved_step(home: Home, job_id: str) -> int:
    """The step of the newest checkpoint."""
    return max(one.step or 0 for one in home.store.checkpoints.of_job(job_id) if one.kind == "checkpoint")


def wait_for_end(home: Home, job_id: str, outcome: Outcome, *, meanwhile: Callable[[], None] = lambda: None) -> None:
    def ended() -> Outcome | None:
        meanwhile()
        return home.job(job_id).outcome

    def story() -> str:
        return log_of(home, job_id)[-4000:]

    assert until(ended, f"the end of {job_id}", seconds=PATIENCE_SECONDS, story=story) is outcome, story()


def log_of(home: Home, job_id: str) -> str:
    return b"".join(home.store.logs.text(job_id)).decode("utf-8", "replace")


def files_of(home: Home, job_id: str) -> set[str]:
    """What was brought home, by name."""
    folder = home.path / "jobs" / job_id / "files"
    return {path.name for path in folder.rglob("*") if path.is_file()}


def sampled_steps(names: set[str]) -> dict[int, int]:
    """How many samples there are of each step."""
    steps = [int(found[1]) for name in names if (found := re.search(r"__(\d{9})_\d+\.jpg$", name))]
    return {step: steps.count(step) for step in sorted(set(steps))}


def phases_of(reference: str, log: str) -> list[str]:
    """One after the other, as a reader that is fed line by line sees them."""
    recipe = find(reference).recipe
    reader = LogReader(framework=recipe.framework, patterns=user_patterns(recipe.log_patterns))
    phases: list[str] = []
    for line in log.splitlines(keepends=True):
        for reading in reader.feed(line.encode()):
            if reading.phase is not None and reading.phase.value not in phases[-1:]:
                phases.append(reading.phase.value)
    return phases


def drawn_losses(home: Home) -> dict[int, float]:
    """What the bar showed, in the log on the machine: a step's loss is drawn last before the step is counted."""
    found: dict[int, float] = {}
    for log in (home.path / "machines").glob("*/jobs/*/.trackside/steps/*/log"):
        text = log.read_text(encoding="utf-8", errors="replace")
        for counted, loss in re.findall(r"_flux: [^\r\n]*\| (\d+)/\d+ \[[^\]]*loss: ([\d.e+-]+)\]", text):
            found[int(counted) + 1] = float(loss)
    return found


def trainer_of(home: Home) -> int | None:
    """The process that is ai-toolkit itself."""
    (machine,) = (home.path / "machines").iterdir()
    for pid in processes_of(machine.name):
        # Its data loader's processes look the same; it alone leads their session.
        if b"/run.py\0" in Path(f"/proc/{pid}/cmdline").read_bytes() and os.getsid(pid) == pid:
            return pid
    return None
