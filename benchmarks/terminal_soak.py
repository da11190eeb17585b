"""50 hours of the terminal app in minutes, with 100 machines and with 5: memory, tasks, threads and open files.

The real app, feed, history and charts, in a time that passes hundreds of times as fast; machines come and go, stop to
answer, and a person uses every screen. Each run has a process of its own. `--hours 5` shows more quickly that it works.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _report import print_figure, report
from tests.support.terminal.soak import Soaked, Vitals, soak

HOURS = 50.0
GROWTH_MB = 5.0
_WARM_SHARE = 0.1  # of the hours, until every screen was used and every cache is full
#: Machines, seconds between looks, how much faster time passes, whether all allocations are traced and values stored.
_RUNS = ((100, 60.0, 480.0, False, False), (5, 10.0, 500.0, True, True))


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--hours", type=float, default=HOURS)
    options.add_argument("--run", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.run is not None:
        return _run(chosen.run, hours=chosen.hours)
    for number, (machines, *_) in enumerate(_RUNS):
        argv = [sys.executable, __file__, "--run", str(number), "--hours", str(chosen.hours)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        _report(json.loads(done.stdout), machines=machines, hours=chosen.hours)
    return 0


def _run(number: int, *, hours: float) -> int:
    machines, every, factor, is_traced, is_stored = _RUNS[number]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    if is_traced:
        tracemalloc.start()
    with tempfile.TemporaryDirectory() as folder:
        soaked = asyncio.run(
            soak(
                Path(folder),
                machines=machines,
                hours=hours,
                every_seconds=every,
                factor=factor,
                sample_hours=hours * _WARM_SHARE / 2,
                is_stored=is_stored,
            )
        )
    print(json.dumps(dataclasses.asdict(soaked)))
    return 0


def _report(told: dict[str, object], *, machines: int, hours: float) -> None:
    vitals = tuple(Vitals(**each) for each in told.pop("vitals"))  # type: ignore[attr-defined]
    soaked = Soaked(vitals=vitals, **told)  # type: ignore[arg-type]
    warm = hours * _WARM_SHARE
    what = f"terminal app, {hours:g} hours with {machines} machines"
    began, ended = next(each for each in vitals if each.hour >= warm), vitals[-1]
    mb = (1 << 20) / 1e6
    traced = soaked.traced_mib(since_hour=warm)  # where it is, the tracing itself takes resident memory
    how, grown = ("resident", soaked.grown_mib(since_hour=warm)) if traced is None else ("traced", traced)
    report(f"{what}: {how} memory gained since hour {warm:g}", grown * mb, "MB", at_most=GROWTH_MB)
    report(f"{what}: widgets gained", ended.widgets - began.widgets, "widgets", at_most=10)
    report(f"{what}: tasks gained", ended.tasks - began.tasks, "tasks", at_most=0)
    report(f"{what}: threads gained", ended.threads - began.threads, "threads", at_most=0)
    report(f"{what}: open files gained", ended.files - began.files, "files", at_most=0)
    report(f"{what}: threads, files and tasks left after the end", len(soaked.left), "in all", at_most=0)
    print_figure(f"{what}: looks shown", ended.looks, "looks")
    print_figure(f"{what}: resident memory at the end", ended.resident_mib, "MiB")


if __name__ == "__main__":
    sys.exit(main())
