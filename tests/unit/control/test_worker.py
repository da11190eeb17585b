"""The lease loop against a real store: what trips is told and tried again, and nothing is lost or spun on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.lease_writer import LeaseWriter
from stationmaster.control.flow.world import World
from stationmaster.control.internal_errors import after_internal_error
from stationmaster.control.worker.held_job import HeldJob
from stationmaster.control.worker.worker import Worker
from stationmaster.errors import LeaseLost, NotFound
from stationmaster.model import Desired, Listing, Reason, State
from stationmaster.providers.fake import FakeProvider
from stationmaster.store.engine import Database
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.asynchronous_tests import asynchronous, until
from tests.support.jobs.spine_values import spec
from tests.support.policies import changed

PACE = {"lease": 2.0, "renew": 0.05, "look": 0.05, "sweep": 0.05}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    yield opened
    opened.close()


def no_recipe(reference: str) -> Any:
    raise NotFound(f"there is no recipe {reference}")


def no_machine(_access: Any) -> Any:
    raise AssertionError("nobody logs in here")


@asynccontextmanager
async def worker_of(store: Store, tmp_path: Path, *providers: FakeProvider, retry_seconds: float = 60.0) -> Any:
    world = World(
        store=store,
        providers={provider.name: provider for provider in providers},
        connect=no_machine,
        find_recipe=no_recipe,
        secrets=lambda _name: None,
        home=tmp_path,
        trackside=tmp_path / "trackside.pyz",
        policy=changed(retry_seconds=(retry_seconds,), worker=PACE),
    )
    try:
        yield Worker(world, owner="me")
    finally:
        await world.close()


@asynchronous
async def test_a_job_that_trips_is_told_alerted_and_tried_again_later(store: Store, tmp_path: Path) -> None:
    store.jobs.submit(spec("a"))
    async with worker_of(store, tmp_path, FakeProvider()) as worker:
        await worker.work_until_idle()
    job = store.jobs.get("a")
    assert (job.state, job.outcome, job.setbacks.internal_errors) == (State.PROVISIONING, None, 1)
    assert [event.kind for event in store.events.of_job("a")].count("tripped") == 1
    assert "there is no recipe" in store.alerts.open("a")[0].message
    assert store.jobs.seconds_until_due() == pytest.approx(60.0, abs=10.0)


@asynchronous
async def test_a_job_that_trips_over_a_wish_is_not_spun_on(store: Store, tmp_path: Path) -> None:
    """It would be due again at once as long as the wish counts as unseen."""
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("before", limit=1, seconds=20)
    store.leases.settle(lease, Write(job=replace(lease.job, state=State.EXECUTING)))
    store.jobs.desire("a", Desired.STOP)
    async with worker_of(store, tmp_path, FakeProvider()) as worker:
        await worker.work_until_idle()
    job = store.jobs.get("a")
    assert (job.seen_seq, job.desired_seq, job.desired) == (1, 1, Desired.STOP)
    assert job.setbacks.internal_errors == 1


@asynchronous
async def test_a_job_without_a_provider_can_be_cancelled(store: Store, tmp_path: Path) -> None:
    """Nothing was rented, so nobody has to be asked whether it is gone."""
    store.jobs.submit(spec("a", provider="nowhere"))
    async with worker_of(store, tmp_path, retry_seconds=0.0) as worker:
        running = asyncio.create_task(worker.run())
        await until(lambda: bool(store.alerts.open("a")), what="the alert")
        store.jobs.desire("a", Desired.CANCEL)
        await until(lambda: store.jobs.get("a").state is State.ENDED, what="the end")
        await until(lambda: not store.alerts.open("a"), what="no alert")
        worker.leave()
        await running
    assert store.jobs.get("a").reason is Reason.CANCELLED_BY_USER


@asynchronous
async def test_a_job_waits_unharmed_for_a_worker_that_has_its_provider_and_says_so(
    store: Store, tmp_path: Path
) -> None:
    store.jobs.submit(spec("a", provider="nowhere"))
    appeared: dict[str, FakeProvider] = {}
    async with worker_of(store, tmp_path, FakeProvider()) as worker:
        worker.world.reload_providers = lambda: appeared
        running = asyncio.create_task(worker.run())
        await until(lambda: bool(store.alerts.open("a")), what="the alert")
        waiting = store.jobs.get("a")
        assert (waiting.state, waiting.setbacks.internal_errors) == (State.QUEUED, 0)
        assert "no worker serves the provider nowhere" in store.alerts.open("a")[0].message
        assert [one.providers for one in store.workers.alive()] == [{"fake"}]
        appeared["nowhere"] = FakeProvider(name="nowhere")
        await until(lambda: store.jobs.get("a").state is not State.QUEUED, what="a worker that takes it")
        assert [one.providers for one in store.workers.alive()] == [{"fake", "nowhere"}]
        await until(lambda: all(one.kind != "not_served" for one in store.alerts.open("a")), what="no alert")
        worker.leave()
        await running
    assert store.workers.alive() == []


@asynchronous
async def test_a_job_that_is_well_again_is_no_longer_called_ill(store: Store, tmp_path: Path) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("before", limit=1, seconds=20)
    store.leases.settle(lease, after_internal_error(lease.job, "odd", now=lease.now, policy=changed()))
    assert [alert.kind for alert in store.alerts.open("a")] == ["internal_error"]
    store.jobs.desire("a", Desired.CANCEL)
    async with worker_of(store, tmp_path, FakeProvider()) as worker:
        await worker.work_until_idle()
    job = store.jobs.get("a")
    assert (job.state, job.setbacks.internal_errors) == (State.ENDED, 0)
    assert store.alerts.open("a") == []


def held_until(lease: Lease, safe_until: float) -> HeldJob:
    async def write_nothing(_entries: object) -> list[Lease | None]:
        raise AssertionError("nothing is written")

    writer = LeaseWriter(write_nothing)
    return HeldJob(lease=lease, safe_until=safe_until, writer=writer, stream_writer=writer, free_slot=lambda: None)


def test_a_lease_that_may_be_over_is_not_rented_on(store: Store) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("me", limit=1, seconds=20)
    held_until(lease, boottime() + 60).check()
    with pytest.raises(LeaseLost):
        held_until(lease, boottime()).check()


class OddProvider(FakeProvider):
    """Answers a listing with something that nobody foresaw."""

    async def listing(self) -> Listing:
        raise RuntimeError("an answer that nobody foresaw")


@asynchronous
async def test_a_sweep_that_trips_does_not_end_the_worker(store: Store, tmp_path: Path) -> None:
    store.jobs.submit(spec("a"))
    async with worker_of(store, tmp_path, OddProvider()) as worker:
        running = asyncio.create_task(worker.run())
        await until(lambda: store.jobs.get("a").setbacks.internal_errors == 1, what="the job was handled")
        assert not running.done()
        worker.leave()
        await running


@asynchronous
async def test_a_worker_that_leaves_hands_everything_back_at_once(store: Store, tmp_path: Path) -> None:
    store.jobs.submit(spec("a"))
    (lease,) = store.leases.claim("me", limit=1, seconds=600)
    async with worker_of(store, tmp_path, FakeProvider()) as worker:
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        worker.leave()
        await running
    assert isinstance(lease, Lease)
    assert len(store.leases.claim("other", limit=1, seconds=20)) == 1


class SlowProvider(FakeProvider):
    """Looks through its machines for as long as it is held up."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = asyncio.Event()
        self.asked = asyncio.Event()

    async def listing(self) -> Listing:
        self.asked.set()
        await self.goes_on.wait()
        return await super().listing()


@asynchronous
async def test_a_relieved_worker_ends_its_visits_and_claims_nothing_more(store: Store, tmp_path: Path) -> None:
    store.jobs.submit(spec("a"))
    provider, is_over, was_told = SlowProvider(), asyncio.Event(), asyncio.Event()

    async def relieved() -> bool:
        if is_over.is_set():
            was_told.set()
        return is_over.is_set()

    async with worker_of(store, tmp_path, provider) as worker:
        running = asyncio.create_task(worker.run(relieved=relieved))
        await provider.asked.wait()
        is_over.set()
        await was_told.wait()
        store.jobs.submit(spec("b"))
        leased_until = store.jobs.get("a").lease_until or 0.0
        await until(lambda: (store.jobs.get("a").lease_until or 0.0) > leased_until, what="a renewed lease")
        assert not running.done()
        assert [lease.job.id for lease in store.leases.claim("other", limit=5, seconds=20)] == ["b"]
        provider.goes_on.set()
        await running
    assert store.rentals.of_job("a"), "the visit went on to its end"


@asynchronous
async def test_handlers_are_interrupted_before_their_lease_ends_though_the_renewal_is_not_answered(
    store: Store, tmp_path: Path
) -> None:
    """As when a process that was stopped inside a transaction keeps the store locked."""
    store.jobs.submit(spec("a"))
    provider = SlowProvider()
    async with worker_of(store, tmp_path, provider) as worker:
        running = asyncio.create_task(worker.run())
        await until(lambda: bool(handlers("a")) and store.rentals.of_job("a") != [], what="a visit that goes on")
        (handler,) = handlers("a")
        with closing(Database(f"sqlite:///{tmp_path}/store.db")) as other, other.write():
            await until(lambda: handler.cancelling() > 0, what="an interrupted handler", seconds=20.0)
        worker.leave()
        await running


def handlers(job_id: str) -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == f"job {job_id}"]
