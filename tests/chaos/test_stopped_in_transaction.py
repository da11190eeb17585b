"""A worker that is stopped inside a transaction keeps no job from the others: PostgreSQL ends its session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from stationmaster.settings import WorkerSettings
from stationmaster.store.engine import Database, SessionLimits
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs
from tests.support.chaos.loopback import WorkerForge, is_alive, is_stopped
from tests.support.chaos.points import LEASING
from tests.support.chaos.specs import a_job
from tests.support.chaos.takeover import BUDGET_SECONDS, gone_on_at
from tests.support.chaos.worker import Order
from tests.support.servers.postgres import PostgresServer
from tests.support.waiting import until

CLAIM, RENEWAL = 1, 2  # the transactions of a worker that change the row of the job which it holds


def test_the_default_limits_leave_time_for_a_takeover() -> None:
    """From the stop: the lease expires, the server frees the rows meanwhile, another worker looks for such leases."""
    worker, limits = WorkerSettings(), SessionLimits()
    assert max(worker.lease, limits.idle_in_transaction) + 2 * worker.look < BUDGET_SECONDS
    assert limits.idle_in_transaction < limits.lock, "who waits for a stopped process gets the row, not an error"
    assert worker.renew + limits.lock < worker.lease - 2.0, "a renewal that waits in vain fails before the lease ends"


def test_a_job_goes_on_within_thirty_seconds_when_its_worker_is_stopped_inside_a_transaction(
    tmp_path: Path, station: tuple[Store, Order], forge: WorkerForge
) -> None:
    """With the default lease and limits. Both sleepers keep a row locked, and change nothing when they wake."""
    store, order = station
    stopped_at = {}
    for number, transaction in enumerate((RENEWAL, CLAIM)):
        job_id = f"job-{number}"
        store.jobs.submit(a_job(job_id, tmp_path, recipe="tiny-lora@1", provider="fake"))
        hanging = replace(order, machines="hanging", slots=1, stop_at=LEASING, stop_nth=transaction)
        sleeper = forge.start(hanging)
        until(partial(is_stopped, sleeper), "a stopped worker")
        assert not is_free(store, job_id)
        stopped_at[job_id] = (store.now(), sleeper)
    forge.start(order)
    for job_id, (since, _) in stopped_at.items():
        assert 0 < gone_on_at(store, job_id) - since <= BUDGET_SECONDS
    leases = {job_id: lease_of(store, job_id) for job_id in stopped_at}
    for _, sleeper in stopped_at.values():
        os.kill(sleeper, signal.SIGCONT)
        os.kill(sleeper, signal.SIGTERM)
    until(lambda: not any(is_alive(sleeper) for _, sleeper in stopped_at.values()), "the end of those that woke")
    for _, sleeper in stopped_at.values():
        assert Path(f"{order.log}.{sleeper}.exit").read_text() == "0", Path(order.log).read_text()
    assert {job_id: lease_of(store, job_id) for job_id in stopped_at} == leases


@pytest.fixture
def station(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[tuple[Store, Order]]:
    url = postgres_server.new_store()
    with closing(Store(Database(url))) as store:
        yield store, Order(url=url, home=str(tmp_path), log=str(tmp_path / "log"), stays=True, machines="fake")


def is_free(store: Store, job_id: str) -> bool:
    """Whether no transaction has locked its row: a worker cannot claim a locked one, whatever its lease says."""
    with store.database.write() as connection:
        free = sa.select(jobs.c.id).where(jobs.c.id == job_id).with_for_update(skip_locked=True)
        return connection.execute(free).first() is not None


def lease_of(store: Store, job_id: str) -> tuple[str, int]:
    with store.database.read() as connection:
        found = connection.execute(sa.select(jobs.c.lease_owner, jobs.c.lease_token).where(jobs.c.id == job_id)).one()
    return found.lease_owner, found.lease_token
