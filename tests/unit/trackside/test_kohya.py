"""A script is run as Python runs it, and what it asks of accelerate and its library is recorded.

The packages here do of accelerate, safetensors and sd-scripts what is followed; the real ones run in tests/trainers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import trackside
from tests.support.jobs.recorded_runs import environment, events_of, facts_of, kinds_and_steps, steps_of, values_of
from trackside.integrations.kohya import script_config

PACKAGES = {
    "accelerate/__init__.py": "from .accelerator import Accelerator\n",
    "accelerate/accelerator.py": """
from .tracking import GeneralTracker

class Accelerator:
    def __init__(self, log_with=None):
        self.log_with, self.trackers = [] if log_with is None else [log_with], []
    def init_trackers(self, name):
        self.trackers += [each for each in self.log_with if isinstance(each, GeneralTracker)]
    def clip_grad_norm_(self, parameters, most):
        return 0.5 * parameters
    def save_state(self, output_dir=None, **kwargs):
        import safetensors.torch
        safetensors.torch.save_file({}, output_dir + "/model.safetensors")
        return output_dir
    def log(self, values, step=None):
        for tracker in self.trackers:
            tracker.log(values, step=step)
    def end_training(self):
        for tracker in self.trackers:
            tracker.finish()
""",
    "accelerate/tracking.py": "class GeneralTracker: pass\n",
    "accelerate/state.py": "class PartialState:\n    is_main_process, process_index = True, 0\n",
    "safetensors/__init__.py": "",
    "safetensors/torch.py": "def save_file(tensors, filename, metadata=None):\n    return filename\n",
}
LIBRARY = {
    "library/__init__.py": "",
    "library/train_util.py": """
def sample_images_common(accelerator, args, epoch, steps):
    if steps % args["every"] == 0:
        for number in range(2):
            sample_image_inference(accelerator, args, number, epoch, steps)

def sample_image_inference(accelerator, args, number, epoch, steps):
    print("sample", number, "of", steps)
""",
    "library/sdxl_train_util.py": """
from library import train_util

def sample_images(*args, **kwargs):
    return train_util.sample_images_common(*args, **kwargs)
""",
}
SCRIPT = """
import sys
from accelerate import Accelerator
from library import sdxl_train_util
from safetensors.torch import save_file

accelerator = Accelerator()
save_file({}, "cache.safetensors")  # before the training
accelerator.init_trackers("network_train")
accelerator.log({}, step=0)
for step in range(1, 5):
    accelerator.log({"loss/current": 9.0, "loss/average": 9.0, "lr/unet": 1e-4}, step=step - 1)  # half a batch
    accelerator.clip_grad_norm_(step, 1.0)
    sdxl_train_util.sample_images(accelerator, {"every": 2}, None, step)
    if step == 3:
        assert save_file({}, "out/cat-step00000003.safetensors") == "out/cat-step00000003.safetensors"
        accelerator.save_state("out/cat-step00000003-state")
    accelerator.log({"loss/current": 1.0 / step, "loss/average": 0.5, "lr/unet": 1e-4}, step=step)
accelerator.log({"loss/epoch_average": 0.25}, step=1)
accelerator.end_training()
save_file({}, "out/cat.safetensors")
"""

Trained = tuple[Path, "subprocess.CompletedProcess[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_packages(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The database of a whole training, and how it ended."""
    folder = write_packages(tmp_path_factory.mktemp("trained"))
    return folder / "aitk_db.db", run(folder, SCRIPT, options=("--batch-size=5",))


def write_packages(folder: Path) -> Path:
    for name, text in {**PACKAGES, **{f"scripts/{path}": text for path, text in LIBRARY.items()}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run(folder: Path, script: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The launcher with a script beside its library; another Python path has the packages and trackside alone."""
    (folder / "scripts" / "train.py").write_text(script)
    path = os.pathsep.join([str(folder), str(Path(trackside.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-B", "-m", "trackside.integrations.kohya", *options, "scripts/train.py", *arguments],
        cwd=folder,
        env={**os.environ, **environment(folder / "aitk_db.db"), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_step_is_recorded_with_its_loss_and_the_norm_of_its_gradients(trained: Trained) -> None:
    database, done = trained
    assert done.returncode == 0, done.stderr
    rows = steps_of(database)
    assert [(row["step"], row["loss"], row["gradient_norm"]) for row in rows] == [
        *((1, 1.0, 0.5), (2, 0.5, 1.0), (3, 1 / 3, 1.5), (4, 0.25, 2.0))
    ]
    assert {(row["learning_rate"], row["batch_size"]) for row in rows} == {(1e-4, 5)}
    assert values_of(database, "loss/average") == dict.fromkeys(range(1, 5), 0.5)
    assert values_of(database, "loss/epoch_average") == {4: 0.25}


def test_samples_and_saves_are_events_with_their_steps(trained: Trained) -> None:
    database, done = trained
    assert kinds_and_steps(database) == [
        *(("training_start", 0), ("sampling_start", 2), ("sampling_end", 2)),
        *(("save_start", 3), ("save_end", 3), ("save_start", 3), ("save_end", 3)),
        *(("sampling_start", 4), ("sampling_end", 4), ("save_start", 4), ("save_end", 4), ("training_end", 4)),
    ]
    assert done.stdout.splitlines() == [f"sample {number} of {step}" for step in (2, 4) for number in (0, 1)]


def test_the_facts_of_the_training_are_recorded(folder: Path) -> None:
    run(folder, SCRIPT, "--max_train_steps=4")
    assert facts_of(folder / "aitk_db.db") == {"framework": "kohya", "total_steps": "4"}


def test_the_script_has_its_own_arguments_folder_and_name(folder: Path) -> None:
    script = """
import json, sys, library
print(json.dumps([__name__, __file__, sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals()]))
"""
    done = run(folder, script, "--batch-size", "7", "--a=b", "c d")
    assert json.loads(done.stdout) == [
        *("__main__", "scripts/train.py", ["scripts/train.py", "--batch-size", "7", "--a=b", "c d"]),
        *(str(folder / "scripts"), True),
    ]


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(7)", 7), ("os._exit(5)", 5), ("1 / 0", 1), ("", 0)])
def test_the_script_ends_as_it_does_alone(folder: Path, ends: str, code: int) -> None:
    assert run(folder, f"import os, sys\n{ends}\n").returncode == code


def test_a_signal_ends_it_as_it_ends_a_script(folder: Path) -> None:
    assert run(folder, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n").returncode == -15


def test_processes_that_a_script_spawns_find_what_it_defines(folder: Path) -> None:
    """As those of a data loader do; they record nothing."""
    script = """
import multiprocessing

class Collator:
    def __call__(self, number):
        return number * number

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(Collator(), [1, 2, 3]))
"""
    done = run(folder, script)
    assert (done.returncode, done.stdout) == (0, "[1, 4, 9]\n"), done.stderr


def test_an_error_of_memory_is_an_event_before_the_end(folder: Path) -> None:
    script = SCRIPT.replace("for step in", "raise MemoryError('out of memory')\nfor step in")
    done = run(folder, script)
    assert done.returncode == 1
    assert "MemoryError: out of memory" in done.stderr
    assert [event.kind for event in events_of(folder / "aitk_db.db")] == [
        *("training_start", "oom_error", "training_end")
    ]


def test_where_accelerate_is_another_the_script_runs_as_it_is(folder: Path) -> None:
    (folder / "accelerate" / "accelerator.py").write_text("class Accelerator:\n    pass\n")
    done = run(folder, "from accelerate import Accelerator\nprint(Accelerator())\n")
    assert (done.returncode, "Accelerator object" in done.stdout) == (0, True)
    assert "could not record" in done.stderr


def test_the_config_is_that_of_the_file_and_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("max_train_steps = 20\n[network]\nnetwork_dim = 4\nseed = 1\n")
    given = [f"--config_file={tmp_path / 'a'}", "--seed", "2", "--sdpa"]
    assert script_config(given) == {
        "config_file": str(tmp_path / "a"), "max_train_steps": 20, "network_dim": 4, "seed": "2", "sdpa": True,
    }  # fmt: skip
    assert script_config(["--config_file=missing", "--max_train_steps=9"])["max_train_steps"] == "9"
