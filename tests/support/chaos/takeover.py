"""How long a job has no worker after kill -9, on PostgreSQL with the default lease times."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from stationmaster.settings import WorkerSettings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs as jobs_table
from tests.support.chaos.loopback import WorkerForge
from tests.support.chaos.specs import a_job
from tests.support.chaos.worker import Order

BUDGET_SECONDS = 30.0
_GIVEN_UP_AFTER_SECONDS = 60.0


def takeover_seconds(url: str, folder: Path, forge: WorkerForge, *, kills: int, seed: int) -> list[float]:
    """From each kill until another worker has taken the job one step further, by the database's clock.

    Every victim holds one job and renews its lease; each is killed at its own drawn moment of the renewal cycle.
    """
    randomness = random.Random(seed)
    store = Store(Database(url))
    try:
        jobs = [f"job-{number}" for number in range(kills)]
        for job_id in jobs:
            store.jobs.submit(a_job(job_id, folder, recipe="tiny-lora@1", provider="fake"))
        order = Order(url=url, home=str(folder), log=str(folder / "worker.log"), stays=True)
        victims = _victims(order, forge, store, jobs)
        forge.start(replace(order, machines="fake"))
        moments = {job_id: randomness.uniform(0.0, 2 * WorkerSettings().renew) for job_id in jobs}
        killed_at = _kill_all(victims, moments, store)
        return [gone_on_at(store, job_id) - killed_at[job_id] for job_id in jobs]
    finally:
        store.close()


def _victims(order: Order, forge: WorkerForge, store: Store, jobs: list[str]) -> dict[str, int]:
    """One worker for each job, in the midst of a conversation that never ends."""
    pids = [forge.start(replace(order, machines="hanging", slots=1)) for _ in jobs]
    _until(lambda: all(_owner_pid(store, job_id) in pids and _is_asking(store, job_id) for job_id in jobs))
    return {job_id: _owner_pid(store, job_id) for job_id in jobs}


def _kill_all(victims: dict[str, int], moments: dict[str, float], store: Store) -> dict[str, float]:
    began = time.monotonic()
    killed_at: dict[str, float] = {}
    for job_id in sorted(victims, key=moments.__getitem__):
        time.sleep(max(0.0, began + moments[job_id] - time.monotonic()))  # the drawn moment itself, not a wait for luck
        killed_at[job_id] = store.now()
        os.kill(victims[job_id], signal.SIGKILL)
    return killed_at


def gone_on_at(store: Store, job_id: str) -> float:
    _until(lambda: _held_events(store, job_id))
    return _held_events(store, job_id)[0]


def _held_events(store: Store, job_id: str) -> list[float]:
    return [event.at for event in store.events.of_job(job_id) if event.kind == "rental_held"]


def _is_asking(store: Store, job_id: str) -> bool:
    return any(event.kind == "rental_requested" for event in store.events.of_job(job_id))


def _owner_pid(store: Store, job_id: str) -> int:
    """Workers are called host-pid-token."""
    with store.database.read() as connection:
        owner = connection.execute(sa.select(jobs_table.c.lease_owner).where(jobs_table.c.id == job_id)).scalar()
    return int(owner.rsplit("-", 2)[1]) if owner else 0


def _until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + _GIVEN_UP_AFTER_SECONDS
    while not condition():
        assert time.monotonic() < ends, "no worker takes the job over"
        time.sleep(0.1)
