"""The main flow: take one job one step further. Safe to repeat, safe to interrupt anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from stationmaster.control.states import (
    ended,
    executing,
    fetching,
    finalizing,
    provisioning,
    queued,
    releasing,
    transferring,
)
from stationmaster.control.step import Handler
from stationmaster.control.world import Guard, Visit, World
from stationmaster.model import State
from stationmaster.store.leases import Lease
from stationmaster.store.writes import Write

HANDLERS: Mapping[State, Handler[Any, Any]] = {
    State.QUEUED: queued.HANDLER,
    State.PROVISIONING: provisioning.HANDLER,
    State.TRANSFERRING_DATA: transferring.HANDLER,
    State.EXECUTING: executing.HANDLER,
    State.FETCHING_RESULTS: fetching.HANDLER,
    State.FINALIZING: finalizing.HANDLER,
    State.RELEASING: releasing.HANDLER,
    State.ENDED: ended.HANDLER,
}


async def reconcile(lease: Lease, guard: Guard, world: World, record: Callable[[Write], Awaitable[None]]) -> None:
    """observe → decide → record → perform → apply. Raises LeaseLost when the job is somebody else's by now."""
    handler = HANDLERS[lease.job.state]
    job = replace(lease.job, seen_seq=lease.job.desired_seq)  # whatever is written next has seen this wish
    seen = await handler.observe(Visit(job=job, now=lease.now, guard=guard, record=record), world)
    step = handler.decide(seen, world.policy)
    if step.then is None:
        assert step.write is not None, "a step writes or acts"
        await world.ask_store(world.store.leases.settle, lease, step.write)
        return
    if step.write is not None:
        # Due at once: whoever takes over from a worker that died in between must not wait for the next look.
        await world.ask_store(world.store.leases.record, lease, replace(step.write, due_in=0.0))
        job = step.write.job
    learnt = await handler.perform(step.then, job, seen, world)
    await world.ask_store(world.store.leases.settle, lease, learnt)
