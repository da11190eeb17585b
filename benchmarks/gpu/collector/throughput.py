"""Steps per second of one training, in turn without and with the collector: prints one JSON object.

    throughput.py FOLDER SECONDS REPETITIONS

All turns are in one process with one model, in an order that rotates, so that a card that warms up favours no way.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from gpu.collector.small_training import SmallTraining
from trackside import Run

WITHOUT, WITH = "without", "with the collector, which also samples"
_WARM_UP_SECONDS = 5.0


def main(folder: str, seconds: str, repetitions: str) -> int:
    training = SmallTraining()
    _steps_per_second(training, _WARM_UP_SECONDS, run=None)
    ways = [WITHOUT, WITH]
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
    with Run("throughput", str(database), framework="pytorch") as run:
        return _steps_per_second(training, seconds, run=run)


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
