"""A worker with nothing to do: memory and share of a core over 30 seconds, on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _process import cpu_seconds, resident_megabytes
from _report import report

BUDGET_MEGABYTES = 150.0
BUDGET_PERCENT = 1.0
SECONDS = 30.0
_START_SECONDS = 60.0


def main() -> int:
    with tempfile.TemporaryDirectory() as home, _worker(Path(home)) as worker:
        _wait_until_it_works(worker, Path(home))
        time.sleep(2.0)  # the first poll and the first sweep are not idle time
        began, used = time.monotonic(), cpu_seconds(worker.pid)
        time.sleep(SECONDS)
        percent = 100 * (cpu_seconds(worker.pid) - used) / (time.monotonic() - began)
        megabytes = resident_megabytes(worker.pid)
        worker.terminate()
        worker.wait(timeout=30)
    report("worker, idle: resident memory", megabytes, "MB", at_most=BUDGET_MEGABYTES)
    report("worker, idle: share of a core", percent, "%", at_most=BUDGET_PERCENT)
    return 0


def _worker(home: Path) -> subprocess.Popen[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATIONMASTER_")}
    command = [sys.executable, "-m", "stationmaster", "--home", str(home), "worker"]
    return subprocess.Popen(command, env=clean, stderr=subprocess.DEVNULL)


def _wait_until_it_works(worker: subprocess.Popen[bytes], home: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while not (home / "stationmaster.db").exists():
        if worker.poll() is not None or time.monotonic() > ends:
            raise SystemExit("the worker did not start")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
