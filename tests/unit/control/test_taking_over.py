"""The machine of an adopted training gets the job's label after the intent: however often a worker is killed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from stationmaster.control.flow.world import World
from stationmaster.control.states.provisioning.handler import Create, Listed, decide, perform
from stationmaster.control.states.provisioning.market import look_at_market
from stationmaster.model import AdoptedTraining, Job, Machine, Reason, RentalState, State
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job, label, machine, requested, spec, visit

TRAINING = AdoptedTraining(target="7", log="/l", instance="m7", release=True, label_before="ann's")


def adopting() -> Job:
    return job(spec=spec(adopted=TRAINING, recipe="adopted@1"), state=State.PROVISIONING, state_since=90.0)


@asynccontextmanager
async def world_with(folder: Path, *machines: Machine) -> AsyncIterator[tuple[World, FakeProvider]]:
    provider = FakeProvider()
    provider.machines = {each.provider_id: each for each in machines}
    store = Store(Database(f"sqlite:///{folder}/store.db"))
    world = World(
        store=store,
        providers={"fake": provider},
        connect=lambda _: None,  # type: ignore[arg-type, return-value]
        find_recipe=find,
        secrets=lambda _: None,
        home=folder,
        trackside=folder,
    )
    try:
        yield world, provider
    finally:
        await world.close()
        store.close()


async def looked(world: World, provider: FakeProvider) -> Listed:
    """What a visit sees once the intent is written."""
    seen = visit(adopting())
    held = requested()
    listing = await provider.listing()
    view = Listed(visit=seen, rental=held, listing=listing, create_limit_seconds=1.0)
    return replace(view, market=await look_at_market(seen, held, world)) if view.may_create else view


@asynchronous
async def test_it_is_labelled_and_nothing_is_rented(tmp_path: Path) -> None:
    async with world_with(tmp_path, machine("m7", label="ann's"), machine("m8", label="web")) as (world, provider):
        view = await looked(world, provider)
        step = decide(view, world.policy)
        assert isinstance(step.then, Create)
        assert step.write is not None
        assert step.write.rentals[0].create_sent_at is not None, "the time of asking is written first"
        for _ in range(2):  # a worker that was killed after the call does it again
            write = await perform(step.then, adopting(), view, world)
            assert [(each.state, each.provider_id) for each in write.rentals] == [(RentalState.HELD, "m7")]
        labels = {each.provider_id: each.label for each in provider.machines.values()}
        assert (labels, provider.created) == ({"m7": label(), "m8": "web"}, [])
        again = decide(await looked(world, provider), world.policy)
        assert again.then is None, "the next visit finds it by its label"
        assert again.write is not None
        assert again.write.rentals[0].provider_id == "m7"


@asynchronous
async def test_one_that_is_gone_or_another_job_s_is_not_taken(tmp_path: Path) -> None:
    for machines in ((), (machine("m7", label="sm-otherone-job-1"),)):
        async with world_with(tmp_path, *machines) as (world, provider):
            write = decide(await looked(world, provider), world.policy).write
            assert write is not None
            assert (write.job.state, write.job.reason) == (State.RELEASING, Reason.NO_OFFER)
            assert all(each.label != label() for each in provider.machines.values())
