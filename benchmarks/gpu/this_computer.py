"""Jobs on the GPU of this computer: what `doctor` and `offers` tell, two jobs that take turns, and two that do not fit.

    PYTHONPATH=src python3 benchmarks/gpu/this_computer.py [--steps 300] [--python PYTHON]

Everything runs in a home of its own, through the command line. Prints what a person would see, then one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from stationmaster.control.worker.background import running_worker
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.store.engine import Database
from stationmaster.store.store import Store

RECIPE = Path(__file__).parent / "this-computer"
OCCUPY = """
import sys, torch
held = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
print("held", flush=True)
sys.stdin.read()
"""
FIRST, SECOND = "first", "second"


class Home:
    """A home of Stationmaster's own, with this computer as its machine."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.path, self.python = folder, folder / "home", python
        shutil.copytree(RECIPE, folder / "recipes" / "this-computer")
        write_sample_set(folder / "pictures", images=2)
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(self.path),
            "STATIONMASTER_PROVIDER": "loopback",
            "STATIONMASTER_RECIPES": str(folder / "recipes"),
            "STATIONMASTER_MONITORING__SAMPLE_INTERVAL_SECONDS": "1",
            "STATIONMASTER_MONITORING__POLL_INTERVAL": "2",
            "STATIONMASTER_WORKER__LINGER": "5s",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a person would, and show both."""
        command = [sys.executable, "-m", "stationmaster", *words]
        ran = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        print(f"$ stationmaster {' '.join(words)}\n{ran.stdout}{ran.stderr}[exit code {ran.returncode}]\n", flush=True)
        return ran

    def train(self, name: str, *words: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
        job_file = () if file is None else (str(file),)
        given = (
            "--recipe",
            "this-computer@1",
            "--dataset",
            str(self.folder / "pictures"),
            "--name",
            name,
            "--id",
            name,
        )
        return self.run("train", *job_file, *given, "-p", f"python={self.python}", "--yes", *words)

    def end_worker(self) -> None:
        found = running_worker(self.path)
        if found is not None and found.pid:
            os.kill(found.pid, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--python", default=shutil.which("python3"), help="a Python with PyTorch and transformers")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gpu-") as made:
        home = Home(Path(made), options.python)
        try:
            measured = _try_everything(home, options.steps)
        finally:
            home.end_worker()
    print(json.dumps(measured))
    return 0


def _try_everything(home: Home, steps: int) -> dict[str, Any]:
    home.run("doctor")
    home.run("offers", "--recipe", "this-computer@1")
    too_large = home.folder / "large.yaml"
    too_large.write_text("machine: {vram_gib: 400}\n")
    refused = home.train("large", file=too_large)
    occupied = _refused_beside_another_program(home)
    for name in (FIRST, SECOND):
        home.train(name, "--steps", str(steps))
    store = Store(Database(f"sqlite:///{home.path}/stationmaster.db"))
    _wait(lambda: store.jobs.get(FIRST).progress.step or 0, above=steps // 2)
    home.run("jobs")
    home.run("show", FIRST)
    home.run("show", SECOND)
    for name in (FIRST, SECOND):
        home.run("watch", name)
        home.run("show", name, "--events")
    before, after = (store.rentals.of_job(name)[0] for name in (FIRST, SECOND))
    measured = {
        "exit_code_too_large": refused.returncode,
        "exit_code_memory_in_use": occupied,
        "second_waited_for_first": (before.release_asked_at or 0) <= (after.held_at or 0),
        **{name: _measured(store, name) for name in (FIRST, SECOND)},
    }
    store.close()
    return measured


def _refused_beside_another_program(home: Home) -> int:
    """The exit code of a job that would fit if another program did not use the GPU."""
    pipe = subprocess.PIPE
    free = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"], capture_output=True, check=True
    )
    gib = max(1, int(free.stdout.split()[0]) // 1024 - 8)
    with subprocess.Popen([home.python, "-c", OCCUPY, str(gib)], stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        other.stdout.readline()
        return home.train("crowded").returncode


def _wait(value: Any, *, above: float) -> None:
    ends = time.monotonic() + 240
    while value() <= above and time.monotonic() < ends:
        time.sleep(1)


def _measured(store: Store, name: str) -> dict[str, Any]:
    job = store.jobs.get(name)
    tables = store.series.read(name, "GpuSample")
    samples = list(tables[max(tables)].rows()) if tables else []
    busy = [row["utilization_percent"] for row in samples if row["utilization_percent"] is not None]
    (rental,) = store.rentals.of_job(name)
    return {
        "outcome": str(job.outcome),
        "gpu": job.machine.gpus,
        "steps": job.progress.step,
        "loss": job.progress.loss,
        "seconds_from_submit_to_machine": round((rental.held_at or 0) - job.created_at, 1),
        "seconds_on_machine": round((rental.gone_at or 0) - (rental.held_at or 0), 1),
        "gpu_samples": len(samples),
        "gpus_seen": len({row["gpu_index"] for row in samples}),
        "gpu_busy_most": max(busy, default=None),
        "gpu_peak_gib": max((row["memory_used_gb"] for row in samples if row["memory_used_gb"]), default=None),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
