"""The API of a real `serve` with 2,000 jobs and 1,000,000 readings: the time of what programs and pages ask for."""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import httpx
import sqlalchemy as sa

from _installation import JOBS, add_jobs, serving
from _process import resident_megabytes
from _report import print_figure, report
from stationmaster.config import load_settings
from stationmaster.station.local.station import LocalStation
from stationmaster.station.tokens import NewToken
from stationmaster.store.store import Store
from stationmaster.store.tables import readings

LONG_RUNS = 20
STEPS = 50_000  # of each long run: a million in all
BUDGET_MILLISECONDS = 50.0
CLIENTS = 2
PAUSE_SECONDS = 0.05  # a page or program that looks twenty times a second
ROUNDS = 40
LONG = "job-1990"

ASKED = {
    "a page of jobs": "/api/jobs?ended=true&limit=50",
    "the jobs that run": "/api/jobs?limit=50",
    "one job": "/api/jobs/job-7",
    "a job's events": "/api/jobs/job-7/events",
    "a job's log": "/api/jobs/job-7/logs",
    "a page of readings": f"/api/jobs/{LONG}/readings?limit=500",
    "a chart of 50,000 steps": f"/api/jobs/{LONG}/metrics/series?name=loss&columns=1000",
    "costs of a job": "/api/jobs/job-7/costs",
    "the inbox": "/api/users/me/inbox",
    "who is asking": "/api/server",
}


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        token = _fill(home)
        with serving(home) as (url, pid):
            times = _measured(url, token)
            memory = resident_megabytes(pid)
    everything = [each for found in times.values() for each in found]
    for name, found in times.items():
        print_figure(f"API, {JOBS:,} jobs: p95 of {name}", 1000 * _p95(found), "ms")
    report(
        "API with 2,000 jobs and 1,000,000 readings: p95", 1000 * _p95(everything), "ms", at_most=BUDGET_MILLISECONDS
    )
    print_figure("API: resident memory of serve afterwards", memory, "MB")
    return 0


def _fill(home: Path) -> str:
    """An installation with a history; returns an administrator's token."""
    environ = {"STATIONMASTER_HOME": str(home)}
    with closing(LocalStation(load_settings(environ, folder=home), environ)) as station:
        add_jobs(station, steps=STEPS)
        for number in range(JOBS - LONG_RUNS, JOBS):
            _add_readings(station.store, f"job-{number}")
        return station.tokens.create(NewToken(name="benchmark", user="me")).secret


def _add_readings(store: Store, job_id: str) -> None:
    rows = [
        {"job_id": job_id, "attempt": 1, "at": 1.7e9 + step, "step": step, "loss": 1.0 / step, "steps_per_second": 1.0}
        for step in range(1, STEPS + 1)
    ]
    with store.database.write() as connection:
        connection.execute(sa.insert(readings), rows)


def _measured(url: str, token: str) -> dict[str, list[float]]:
    """The seconds of each kind of request, asked by several clients at once."""
    times: dict[str, list[float]] = {name: [] for name in ASKED}

    def ask() -> None:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            for _ in range(ROUNDS):
                for name, path in ASKED.items():
                    began = time.perf_counter()
                    client.get(path).raise_for_status()
                    times[name].append(time.perf_counter() - began)
                    time.sleep(PAUSE_SECONDS)

    clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return times


def _p95(found: list[float]) -> float:
    return statistics.quantiles(found, n=20)[-1]


if __name__ == "__main__":
    sys.exit(main())
