"""`up` with nothing to do, and `serve` and `worker` apart: memory, and share of a core over 30 seconds, on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from _process import cpu_seconds, resident_megabytes
from _report import report

TOGETHER_MEGABYTES = 150.0
APART_MEGABYTES = 190.0
BUDGET_PERCENT = 1.0
SECONDS = 30.0


def main() -> int:
    together, percent = _measured([["up", "--port", "0"]])
    report("up, idle: resident memory", together, "MB", at_most=TOGETHER_MEGABYTES)
    report("up, idle: share of a core", percent, "%", at_most=BUDGET_PERCENT)
    apart, percent = _measured([["serve", "--port", "0"], ["worker"]])
    report("serve and worker apart, idle: resident memory", apart, "MB", at_most=APART_MEGABYTES)
    report("serve and worker apart, idle: share of a core", percent, "%", at_most=BUDGET_PERCENT)
    return 0


def _measured(commands: list[list[str]]) -> tuple[float, float]:
    """Megabytes and percent of a core of all processes; each server has answered a few requests before."""
    with tempfile.TemporaryDirectory() as home, ExitStack() as opened:
        started = [opened.enter_context(_started(Path(home), command)) for command in commands]
        try:
            for process in started:
                _wait_until_it_works(process)
            time.sleep(5.0)  # the first poll and the first sweep are not idle time
            pids = [process.pid for process in started]
            began, used = time.monotonic(), sum(map(cpu_seconds, pids))
            time.sleep(SECONDS)
            percent = 100 * (sum(map(cpu_seconds, pids)) - used) / (time.monotonic() - began)
            return sum(map(resident_megabytes, pids)), percent
        finally:
            for process in started:
                process.terminate()


def _started(home: Path, command: list[str]) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATIONMASTER_")}
    words = [sys.executable, "-m", "stationmaster", "--home", str(home), *command]
    is_worker = command == ["worker"]
    pipes = {
        "stderr" if is_worker else "stdout": subprocess.PIPE,
        "stdout" if is_worker else "stderr": subprocess.DEVNULL,
    }
    return subprocess.Popen(words, env=clean, text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def _wait_until_it_works(process: subprocess.Popen[str]) -> None:
    said = process.stdout or process.stderr
    assert said is not None
    line = said.readline()
    if process.stdout is None:
        assert "worker.started" in line, line
        return
    url = line.split()[-1]
    token = Path(_last_word(process, "token for programs")).read_text().strip()
    for path in ("/healthz", "/api/server", "/api/jobs"):
        request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()


def _last_word(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginning):
            return line.split()[-1]
    raise SystemExit("the server did not start")


if __name__ == "__main__":
    sys.exit(main())
