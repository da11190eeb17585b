"""A stopped machine is started again; a bid's is left to whoever bid more only when the provider will not start it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.flow.world import World
from stationmaster.control.machine.revive import Revive, marked_as_stopped, revive
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.model import Ending, Job, MachineStatus, Reason, State
from stationmaster.providers.fake import FakeProvider, Trouble
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import MACHINE, job, machine, rental, visit

STOPPED = machine(status=MachineStatus.STOPPED, interruptible=True)
SIGHTING = Sighting(fate=Fate.STOPPED, rental=rental(), machine=STOPPED)


def nobody(*_: object) -> Any:
    raise AssertionError("nobody is asked here")


@pytest.fixture
def provider() -> FakeProvider:
    return FakeProvider(machines={"m1": STOPPED})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as store:
        yield store


async def revived(looked_at: Job, provider: FakeProvider, store: Store, *, now: float) -> Write:
    world = World(
        store=store, providers={"fake": provider}, connect=nobody, find_recipe=nobody, secrets=nobody,
        home=Path(), trackside=Path(),
    )  # fmt: skip
    try:
        return await revive(Revive(sighting=SIGHTING), looked_at, visit(looked_at, now=now), world)
    finally:
        await world.close()


def stopped_job() -> Job:
    return marked_as_stopped(job(state=State.EXECUTING, state_since=90.0, machine=MACHINE), SIGHTING)


@asynchronous
async def test_a_start_that_is_only_queued_is_taken_back_and_means_outbid(provider: FakeProvider, store: Store) -> None:
    provider.will(Trouble.QUEUE_START)
    write = await revived(stopped_job(), provider, store, now=100.0)
    assert (write.job.state, write.job.ending.further) == (State.RELEASING, Reason.OUTBID)
    assert provider.machines["m1"].status is MachineStatus.STOPPED


@asynchronous
async def test_a_queued_start_means_nothing_for_a_training_that_had_ended_before(
    provider: FakeProvider, store: Store
) -> None:
    provider.will(Trouble.QUEUE_START)
    done = job(state=State.FETCHING_RESULTS, state_since=90.0, ending=Ending(reason=Reason.FINISHED))
    write = await revived(done, provider, store, now=100.0)
    assert (write.job.state, write.due_in) == (State.FETCHING_RESULTS, 60.0)


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.REFUSE_KEY])
@asynchronous
async def test_what_people_or_time_can_mend_is_no_higher_bid(
    provider: FakeProvider, store: Store, trouble: Trouble
) -> None:
    provider.will(trouble)
    write = await revived(stopped_job(), provider, store, now=100.0)
    assert write.job.state is State.EXECUTING
    assert write.job.unreachable_since == 100.0


@asynchronous
async def test_a_machine_that_is_stopped_again_after_every_start_is_outbid_in_the_end(
    provider: FakeProvider, store: Store
) -> None:
    looked_at, now = stopped_job(), 100.0
    for starts in (1, 2, 3):
        write = await revived(looked_at, provider, store, now=now)
        assert [event.kind for event in write.events] == ["machine_started"]
        looked_at = write.job
        assert looked_at.machine.starts == starts
        early = await revived(looked_at, provider, store, now=now + 5.0)
        assert (early.job, early.events) == (looked_at, ()), "a list may lag behind a start"
        now += 100.0
    write = await revived(looked_at, provider, store, now=now)
    assert (write.job.state, write.job.ending.further) == (State.RELEASING, Reason.OUTBID)
