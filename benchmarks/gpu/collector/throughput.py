"""Steps per second of one training, in turn without and with what records it: prints one JSON object.

    throughput.py FOLDER SECONDS REPETITIONS

All turns are in one process with one model, in an order that rotates, so that a card that warms up favours none.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from gpu.collector.small_training import SmallTraining
from trackside import Run

WITHOUT = "without"
#: What runs beside the training, by the name of the turn.
BESIDE = {"collector and recorder": "recorder", "collector, sampled by nvidia-smi only": "nvidia-smi"}
_WARM_UP_SECONDS = 5.0


def main(folder: str, seconds: str, repetitions: str) -> int:
    training = SmallTraining(is_larger=True)
    _steps_per_second(training, _WARM_UP_SECONDS, run=None)
    ways = [WITHOUT, *BESIDE]
    found: dict[str, list[float]] = {way: [] for way in ways}
    for repetition in range(int(repetitions)):
        shift = repetition % len(ways)
        for way in ways[shift:] + ways[:shift]:
            database = Path(folder) / f"{ways.index(way)}-{repetition}" / "aitk_db.db"
            database.parent.mkdir()
            speed = _one_turn(training, way, database, float(seconds))
            found[way].append(speed)
            print(f"repetition {repetition + 1}, {way}: {speed:.2f} steps/s", file=sys.stderr, flush=True)
    print(json.dumps(found))
    return 0


def _one_turn(training: SmallTraining, way: str, database: Path, seconds: float) -> float:
    if way == WITHOUT:
        return _steps_per_second(training, seconds, run=None)
    command = [sys.executable, "-m", "gpu.collector.beside", str(database), str(os.getpid()), BESIDE[way]]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as beside:
        with Run("throughput", str(database), framework="pytorch", sample_seconds=0) as run:
            speed = _steps_per_second(training, seconds, run=run)
        beside.communicate()  # ends its input, and so itself
    print("  rows:", _row_counts(database), file=sys.stderr, flush=True)
    return speed


def _row_counts(database: Path) -> dict[str, int]:
    tables = ("StepMetric", "MetricsSample", "GpuSample")
    with closing(sqlite3.connect(database)) as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}


def _steps_per_second(training: SmallTraining, seconds: float, *, run: Run | None) -> float:
    training.wait()
    began, step = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        loss = training.step()
        step += 1
        if run is not None:
            run.step(step, loss=loss, lr=1e-4, batch_size=8)
    training.wait()
    return step / (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
