"""Time from when a training writes a line on its machine until a watcher reads it, while it is streamed live.

The whole path is real: a machine of the simulator reached over SSH, `trackside follow` on it, a worker process that
writes to a SQLite store, and a reader of that store that is woken as `logs --follow` is. Each line contains the time
at which it was written; both clocks are this computer's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from _report import report
from stationmaster.config import load_settings
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.model import State
from stationmaster.simulator.cloud import Pace
from stationmaster.simulator.harness import simulator_thread
from stationmaster.simulator.server import SimulatorSettings
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest

BUDGET_MILLISECONDS = 300.0
LINES = 400
_LINES_PER_SECOND = 10
_FIRST_LEFT_OUT = 50  # until the stream has begun
_PATIENCE_SECONDS = 300.0
_KEY = "benchmark-key"
_STAMP = re.compile(rb"stamp (\d+) (\d+)\n")
_RECIPE = """\
name: stamps
version: 1
title: Lines with their time
description: Prints the time, again and again.
framework: plain
needs: {{gpus: 0, disk_gib: 0.1}}
files: [train.py]
steps:
  - {{name: train, training: true, argv: ["{python}", "{{{{ recipe.dir }}}}/train.py"], timeout: 1h}}
outputs:
  - {{pattern: output/*.safetensors, kind: checkpoint}}
time: {{steps: "1", seconds_per_step: 60.0, fixed: 1s}}
"""
_TRAINER = f"""\
import time
time.sleep(3)
for number in range({LINES}):
    print("stamp", number, time.time_ns(), flush=True)
    time.sleep({1 / _LINES_PER_SECOND})
time.sleep(3600)
"""


def main() -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as temporary, _simulator(Path(temporary)) as environ:
        settings = load_settings(environ, folder=Path(temporary))
        with closing(LocalStation(settings, environ)) as station, _worker(environ):
            pictures = Path(temporary, "pictures")
            request = TrainRequest(recipe="stamps@1", dataset=pictures, id="job", provider="simulator")
            station.proposals.submit(station.proposals.propose(request).id)
            milliseconds = sorted(_latencies(station))
    if len(milliseconds) < LINES - _FIRST_LEFT_OUT:
        raise SystemExit(f"only {len(milliseconds)} lines came: the measure is worthless")
    p99 = milliseconds[int(0.99 * len(milliseconds))]
    report("a line on the machine, seen by a watcher while streaming: p99", p99, "ms", at_most=BUDGET_MILLISECONDS)
    return 0


def _latencies(station: LocalStation) -> list[float]:
    """Milliseconds from writing to reading, of every line after the first few."""
    seen, after, found, rest = 0, 0, [], b""
    ends = time.monotonic() + _PATIENCE_SECONDS
    for view in station.jobs.watch("job"):
        if view.job.state is State.ENDED or time.monotonic() > ends:
            raise SystemExit(f"the training ended {view.job.outcome}, or takes too long: {view.job.explanation}")
        while pieces := station.logs.of_job("job", after_seq=after):
            now = time.time_ns()
            after = pieces[-1][0]
            rest += b"".join(chunk.data for _, chunk in pieces)
            stamps = list(_STAMP.finditer(rest))
            rest = rest[stamps[-1].end() :] if stamps else rest
            found += [(now - int(stamp[2])) / 1e6 for stamp in stamps if int(stamp[1]) >= _FIRST_LEFT_OUT]
            seen += len(stamps)
        if seen >= LINES:
            return found
    return found


@contextmanager
def _simulator(folder: Path) -> Iterator[dict[str, str]]:
    """A simulator with quick machines; the environment of a home that rents from it."""
    write_sample_set(folder / "pictures")
    recipe = folder / "recipes" / "stamps"
    recipe.mkdir(parents=True)
    (recipe / "recipe.yaml").write_text(_RECIPE.format(python=sys.executable))
    (recipe / "train.py").write_text(_TRAINER)
    (folder / "home" / "simulator").mkdir(parents=True)
    quick = Pace(created_seconds=0.0, loading_seconds=0.0, restart_seconds=0.0, ssh_seconds=0.0, log_seconds=0.0)
    settings = SimulatorSettings(home=folder / "simulator", api_key=_KEY, pace=quick, rate_limit_scale=0.0)
    with simulator_thread(settings) as url:
        address = {"url": url, "api_key": _KEY, "rate_limit_scale": 0.0, "create_limit_seconds": 1.5}
        (folder / "home" / "simulator" / "address.json").write_text(json.dumps(address))
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(folder / "home"),
            "STATIONMASTER_RECIPES": json.dumps([str(folder / "recipes")]),
        }


@contextmanager
def _worker(environ: dict[str, str]) -> Iterator[None]:
    command = [str(Path(sys.executable).with_name("stationmaster")), "worker"]
    worker = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    sys.exit(main())
