"""Processor seconds that commands take to start, compared with importing the packages that they are built on.

Both depend on the computer's speed, so the limits are measured in the same run: `--help` against `import typer`,
commands that read the store against `import typer, sqlalchemy`. All take turns; the median counts.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from _jobs import job_spec, small_dataset
from _process import cpu_seconds_of_run
from _report import print_figure, report
from stationmaster.model import LogChunk, Outcome, Reason, State
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write

HELP_BUDGET_SECONDS = 0.3
HELP_TIMES_TYPER = 1.8
STORE_TIMES_IMPORTS = 1.5
STORE_EXTRA_SECONDS = 0.1
JOBS = 20
REPEATS = 9
_LOG = b"steps:  10%|# | 100/1000 [01:40<15:00,  1.00s/it, avr_loss=0.0931]\n" * 200

_COMMAND = str(Path(sys.executable).with_name("stationmaster"))
_IMPORTS = {
    "import typer": [sys.executable, "-c", "import typer"],
    "import typer, sqlalchemy": [sys.executable, "-c", "import typer, sqlalchemy"],
}
_READING = {
    "stationmaster jobs": [_COMMAND, "jobs", "--all"],
    "stationmaster show": [_COMMAND, "show", "job-1"],
    "stationmaster logs": [_COMMAND, "logs", "job-1"],
    "TAB after stationmaster show": [_COMMAND, "__complete", "fish", "show", ""],
    "TAB after stationmaster train --recipe tiny-lora@1 --": [
        *(_COMMAND, "__complete", "fish", "train", "--recipe", "tiny-lora@1", "--"),
    ],
}
_HELP = {"stationmaster --help": [_COMMAND, "--help"]}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        _fill(Path(folder))
        seconds = _measure({**_IMPORTS, **_HELP, **_READING}, home=folder)
    typer, imports = (seconds[name] for name in _IMPORTS)
    for name in _IMPORTS:
        print_figure(name, seconds[name], "CPU s")
    for name in _HELP:
        report(name, seconds[name], "CPU s", at_most=HELP_BUDGET_SECONDS)
        report(f"{name}, of import typer", seconds[name] / typer, "times", at_most=HELP_TIMES_TYPER)
    limit = STORE_TIMES_IMPORTS * imports + STORE_EXTRA_SECONDS
    for name in _READING:
        report(f"{name}, limit from import typer, sqlalchemy", seconds[name], "CPU s", at_most=round(limit, 3))
    return 0


def _fill(home: Path) -> None:
    """Jobs that have ended: for others a command would start a worker."""
    store = Store(Database(f"sqlite:///{home}/stationmaster.db"))
    try:
        dataset = small_dataset(home)
        for number in range(JOBS):
            store.jobs.submit(job_spec(number, dataset, steps=10))
        for lease in store.leases.claim("benchmark", limit=JOBS, seconds=60.0):
            ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, reason=Reason.FINISHED, attempt=1)
            log = LogChunk(attempt=1, stream="train", start=0, end=len(_LOG), data=_LOG)
            store.leases.settle(lease, Write(job=ended, due_in=None, logs=(log,)))
    finally:
        store.close()


def _measure(commands: Mapping[str, Sequence[str]], *, home: str) -> dict[str, float]:
    environ = {**os.environ, "STATIONMASTER_HOME": home}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for argv in commands.values():
        cpu_seconds_of_run(argv, env=environ)  # the first one may still write byte code
    runs = [{name: cpu_seconds_of_run(argv, env=environ) for name, argv in commands.items()} for _ in range(REPEATS)]
    return {name: statistics.median(run[name] for run in runs) for name in commands}


if __name__ == "__main__":
    sys.exit(main())
