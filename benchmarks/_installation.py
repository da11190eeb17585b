"""An installation with a long history, and a real `serve` of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _jobs import job_spec, small_dataset
from stationmaster.model import State
from stationmaster.station.local.station import LocalStation
from stationmaster.store.tables import jobs

JOBS = 2_000
LIVE = 100  # of them have not ended


def add_jobs(station: LocalStation, *, steps: int) -> None:
    """`job-0` to `job-1999`, of which the first hundred are under way."""
    dataset = small_dataset(station.processes.home)
    for number in range(JOBS):
        station.store.jobs.submit(job_spec(number, dataset, steps=steps))
    with station.store.database.write() as connection:
        live = [f"job-{number}" for number in range(LIVE)]
        ended = {"state": State.ENDED.value, "outcome": "COMPLETED", "reason": "FINISHED"}
        connection.execute(jobs.update().where(jobs.c.id.not_in(live)).values(**ended))


@contextmanager
def serving(home: Path) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATIONMASTER_")}
    clean["STATIONMASTER_SERVE__REQUESTS_PER_MINUTE"] = "0"
    command = [sys.executable, "-m", "stationmaster", "--home", str(home), "serve", "--port", "0"]
    with subprocess.Popen(command, env=clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline().split()
        try:
            yield next(word for word in first if word.startswith("http")), process.pid
        finally:
            process.terminate()
