"""The collector on a machine with a GPU and PyTorch: what it costs a training, and what it records when one fails.

    python3 benchmarks/gpu/collector_check.py [--seconds 14] [--repetitions 5]

Needs the repository and no network; takes about six minutes. Each part runs in a process of its own, and one that fails
does not end the others. With OUT set, the figures are also written to `$OUT/collector_check.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHECKOUT = Path(__file__).resolve().parents[2]
_KILLED_AFTER_STEPS = 1000
_TRAINER_STEPS = 50


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=14.0, help="Length of one turn of the throughput part.")
    parser.add_argument("--repetitions", type=int, default=5, help="Turns of each way of the throughput part.")
    chosen = parser.parse_args()
    parts: dict[str, Callable[[Path], Any]] = {
        "machine": _machine,
        "out of memory": _out_of_memory,
        "SIGKILL": _killed,
        "transformers Trainer": _trainer,
        "Lightning": _lightning,
        "calls": _calls,
        "throughput": lambda folder: _throughput(folder, chosen.seconds, chosen.repetitions),
    }
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, part) in enumerate(parts.items()):
            print(f"== {name}", flush=True)
            began, own = time.monotonic(), Path(folder) / str(number)
            own.mkdir()
            try:
                figures[name] = part(own)
            except Exception as error:  # noqa: BLE001  # the other parts go on
                figures[name] = {"error": f"{type(error).__name__}: {error}"[:2000]}
            print(json.dumps(figures[name], indent=1), f"({time.monotonic() - began:.0f} s)", flush=True)
            _save(figures)
    return 1 if any("error" in figure for figure in figures.values()) else 0


def _machine(folder: Path) -> dict[str, Any]:
    code = "import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else None)"
    torch, _, gpu = _run(["-c", code]).stdout.strip().partition(" ")
    return {"python": platform.python_version(), "torch": torch, "gpu": gpu, "cpu_cores": os.cpu_count()}


def _out_of_memory(folder: Path) -> dict[str, Any]:
    """Run out of memory, then read what the database has of it."""
    if _machine(folder)["gpu"] == "None":
        return {"skipped": "this machine has no GPU"}
    database = folder / "aitk_db.db"
    ended = _run(["-m", "gpu.collector.out_of_memory", database], check=False)
    events = _rows(
        database,
        "SELECT event_type, details, memory_snapshot_id FROM TrainingEvent WHERE job_id = 'out-of-memory' ORDER BY id",
    )
    snapshot = next((row[2] for row in events if row[0] == "oom_error"), None)
    gpus = _rows(
        database,
        "SELECT g.memory_used_gb, g.memory_total_gb FROM GpuSample g JOIN MetricsSample m ON g.timestamp = m.timestamp"
        " WHERE m.id = ?",
        snapshot,
    )
    used = max((used / total for used, total in gpus if used and total), default=None)
    return {
        "exit_code": ended.returncode,
        "last_line": (ended.stderr.strip().splitlines() or [""])[-1][:300],
        "events": [row[0] for row in events],
        "oom_details": next((row[1] for row in events if row[0] == "oom_error"), None),
        "gpus_used_and_total_gb": gpus,
        "memory_share_of_the_card": used,
        "ok": bool(used and used > 0.9),
    }


def _killed(folder: Path) -> dict[str, Any]:
    database = folder / "aitk_db.db"
    ended = _run(["-m", "gpu.collector.killed", database, str(_KILLED_AFTER_STEPS)], check=False)
    _run(["-c", f"from trackside import Run; Run('next', {str(database)!r}).close()"])
    (rows,) = _rows(database, "SELECT count(DISTINCT step) FROM StepMetric WHERE job_id = 'killed'")[0]
    return {"exit_code": ended.returncode, "steps": rows, "lost": _KILLED_AFTER_STEPS - rows, "ok": rows == 1000}


def _trainer(folder: Path) -> dict[str, Any]:
    database = folder / "logs" / "aitk_db.db"
    database.parent.mkdir()
    given = {"TRACKSIDE_DATABASE": str(database), "TRACKSIDE_JOB": "trainer"}
    _run(["-m", "gpu.collector.trainer_callback", folder / "model", str(_TRAINER_STEPS)], variables=given)
    (steps, losses) = _rows(database, "SELECT count(*), count(loss) FROM StepMetric WHERE job_id = 'trainer'")[0]
    events = [row[0] for row in _rows(database, "SELECT event_type FROM TrainingEvent ORDER BY id")]
    return {"steps": steps, "with_loss": losses, "events": events, "ok": steps == _TRAINER_STEPS}


def _lightning(folder: Path) -> dict[str, Any]:
    database = folder / "aitk_db.db"
    given = {"TRACKSIDE_DATABASE": str(database), "TRACKSIDE_JOB": "lightning"}
    ended = _run(["-m", "gpu.collector.lightning_callback", str(_TRAINER_STEPS)], variables=given)
    (steps, losses) = _rows(database, "SELECT count(*), count(loss) FROM StepMetric WHERE job_id = 'lightning'")[0]
    warnings = [line for line in ended.stderr.splitlines() if "trackside" in line]
    complete = (steps, losses, warnings) == (_TRAINER_STEPS, _TRAINER_STEPS, [])
    return {"steps": steps, "with_loss": losses, "warnings": warnings, "ok": complete}


def _calls(folder: Path) -> dict[str, Any]:
    """The column of `benchmarks/collector.py` on this machine."""
    answer = folder / "calls.json"
    _run([_CHECKOUT / "benchmarks" / "collector.py", "--only", "trackside", "--json", answer])
    found: dict[str, Any] = json.loads(answer.read_text())["trackside"]
    return found


def _throughput(folder: Path, seconds: float, repetitions: int) -> dict[str, Any]:
    ended = _run(
        ["-m", "gpu.collector.throughput", folder, str(seconds), str(repetitions)],
        stderr=None,
        timeout=60 + 6 * seconds * repetitions,
    )
    speeds: dict[str, list[float]] = json.loads(ended.stdout.splitlines()[-1])
    without, *ways = speeds
    bare = speeds[without]
    answer: dict[str, Any] = {
        "steps_per_second": speeds,
        "ms_per_step": 1e3 / statistics.mean(bare),
        "noise_percent": 100 * statistics.stdev(bare) / statistics.mean(bare),
    }
    for way in ways:
        changes = [100 * (with_it / alone - 1) for with_it, alone in zip(speeds[way], bare, strict=True)]
        mean, error = statistics.mean(changes), statistics.stdev(changes) / len(changes) ** 0.5
        answer[way] = {
            "difference_percent": mean,
            "standard_error": error,
            "below_the_noise": abs(mean) <= max(2 * error, answer["noise_percent"]),
        }
    return answer


def _run(
    arguments: list[str | Path], *, variables: dict[str, str] | None = None, check: bool = True,
    stderr: int | None = subprocess.PIPE, timeout: float = 150.0,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run Python with the repository's source in its path."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TRACKSIDE_")}
    paths = [str(_CHECKOUT / "src"), str(_CHECKOUT / "benchmarks"), *filter(None, [env.get("PYTHONPATH")])]
    env |= {"PYTHONPATH": os.pathsep.join(paths), "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"} | (
        variables or {}
    )
    ended = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        timeout=timeout,
    )
    if check and ended.returncode != 0:
        raise RuntimeError(f"exit code {ended.returncode}: {(ended.stderr or '')[-1500:]}")
    return ended


def _rows(database: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def _save(figures: dict[str, Any]) -> None:
    if folder := os.environ.get("OUT"):
        (Path(folder) / "collector_check.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
