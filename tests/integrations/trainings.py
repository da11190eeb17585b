"""Runs a training script with its framework, and reads what it recorded."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.programs import ROOT
from trackside.collector import Run

SCRIPTS = Path(__file__).parent / "scripts"
JOB = "job-1"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A row of StepMetric."""

    step: int
    timestamp: float
    loss: float | None
    batch_size: int | None
    gradient_norm: float | None
    learning_rate: float | None
    step_time_seconds: float | None


@dataclass(frozen=True, slots=True)
class Training:
    """A training that has ended, by its output."""

    exit_code: int
    output: str
    errors: str

    @property
    def printed(self) -> Any:
        """What the script printed about its training, in the last line."""
        assert self.exit_code == 0, self.errors
        return json.loads(self.output.splitlines()[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder with one database, for one training or several."""

    folder: Path
    python: str

    def train(self, framework: str, *, processes: int = 1, **asked: Any) -> Training:
        """Run a framework's script to its end, with what the test asks of it."""
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        done = subprocess.run(
            [
                self.python,
                *(launcher if processes > 1 else []),
                str(SCRIPTS / f"{framework}_training.py"),
                json.dumps({"processes": processes, **asked}),
            ],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=240,
        )
        return Training(done.returncode, done.stdout, done.stderr)

    def _environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("STATIONMASTER_", "RANK"))}
        return {
            **clean,
            **_ONE_THREAD,
            "PYTHONPATH": str(ROOT / "src"),
            "TRACKSIDE_DATABASE": str(self._database),
            "TRACKSIDE_JOB": JOB,
            "TRACKSIDE_RECORDER": "1",
        }

    @property
    def _database(self) -> Path:
        return self.folder / "run.db"

    def steps(self) -> list[Step]:
        """Return the rows of StepMetric, in the order in which they were written."""
        names = ", ".join(Step.__slots__)
        rows = self._read(f"SELECT {names} FROM StepMetric WHERE job_id = ? ORDER BY id")
        return [Step(**dict(zip(Step.__slots__, row, strict=True))) for row in rows]

    def values(self, name: str) -> dict[int, float]:
        """Return the values with this name, by step."""
        rows = self._read("SELECT name, step, value FROM StepValue WHERE job_id = ? ORDER BY id")
        return {step: value for found, step, value in rows if found == name}

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the events with their details, in the order of their times."""
        rows = self._read("SELECT event_type, details FROM TrainingEvent WHERE job_id = ? ORDER BY timestamp, id")
        return [(kind, json.loads(details)) for kind, details in rows]

    def event_names(self) -> list[str]:
        return [kind for kind, _ in self.events()]

    def event_times(self, kind: str) -> list[float]:
        rows = self._read("SELECT event_type, timestamp FROM TrainingEvent WHERE job_id = ? ORDER BY timestamp, id")
        return [at for found, at in rows if found == kind]

    def facts(self) -> dict[str, str]:
        """Return the rows of RunInfo."""
        return dict(self._read("SELECT key, value FROM RunInfo WHERE job_id = ? ORDER BY rowid"))

    def replay(self) -> None:
        """Open and close a run, as the next program on the machine does: it folds what a killed one left."""
        Run("another-job", str(self._database), sample_seconds=0).close()

    def _read(self, query: str) -> list[Any]:
        with sqlite3.connect(self._database) as connection:
            rows = connection.execute(query, (JOB,)).fetchall()
        connection.close()
        return rows


def seconds_of(steps: list[Step]) -> float:
    """Return the time of all steps; each must have one."""
    return sum(float("nan") if step.step_time_seconds is None else step.step_time_seconds for step in steps)
