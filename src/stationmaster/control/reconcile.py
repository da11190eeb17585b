"""The main flow: take one job further, step by step. Safe to repeat, safe to interrupt anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from stationmaster.control.flow.lease_writer import Pen
from stationmaster.control.flow.step import Handler
from stationmaster.control.flow.world import Guard, Visit, World
from stationmaster.control.internal_errors import well_again
from stationmaster.control.states import ended, queued
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.finalizing import handler as finalizing
from stationmaster.control.states.provisioning import handler as provisioning
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.control.states.transferring import handler as transferring
from stationmaster.model import Job, State
from stationmaster.model.copying import changed
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

_MOST_VISITS = 40  # at one go; a job that always finds something to do leaves its place to others now and then


class LeasedJob(Guard, Protocol):
    """A job in a worker's hands; `lease` is as it was last read or written between two visits."""

    lease: Lease


async def reconcile(leased: LeasedJob, world: World, pen: Pen, record: Callable[[Write], Awaitable[None]]) -> None:
    """Take a job as far as it goes without waiting. Raises LeaseLost when it is somebody else's by now."""
    for _ in range(_MOST_VISITS - 1):
        learnt = await _visit(leased, world, pen, record)
        if learnt.due_in != 0.0 or learnt.job.state not in HANDLERS:
            break
        leased.lease = await pen.record(leased.lease, learnt)
    else:
        learnt = await _visit(leased, world, pen, record)
    await pen.settle(leased.lease, learnt)


async def _visit(leased: LeasedJob, world: World, pen: Pen, record: Callable[[Write], Awaitable[None]]) -> Write:
    """observe → decide → record → perform; what is still to be written."""
    lease = leased.lease
    handler = HANDLERS[lease.job.state]
    job = _with_wish_seen(lease.job)  # whatever is written next has seen this wish
    rules = world.rules(job)
    visit = Visit(job=job, now=lease.now, watched=lease.watched, guard=leased, record=record, rules=rules)
    seen = await handler.observe(visit, world)
    step = handler.decide(seen, world.policy)
    if step.then is None:
        assert step.write is not None, "a step writes or acts"
        return well_again(step.write)
    if step.write is not None:
        # Due at once: whoever takes over from a worker that died in between must not wait for the next look.
        # What people want by now is not taken up here: a change of it interrupts the action.
        intent = step.write if step.write.due_in == 0.0 else changed(step.write, due_in=0.0)
        leased.lease = changed(lease, texts=(await pen.record(lease, intent)).texts)
        job = step.write.job
    return well_again(await handler.perform(step.then, job, seen, world))


def _with_wish_seen(job: Job) -> Job:
    return job if job.seen_seq == job.desired_seq else changed(job, seen_seq=job.desired_seq)
