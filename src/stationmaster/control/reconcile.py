"""The main flow: take one job further, step by step. Safe to repeat, safe to interrupt anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from stationmaster.control.flow.deciding import decided
from stationmaster.control.flow.step import Handler, Step
from stationmaster.control.flow.world import Guard, Visit, World
from stationmaster.control.internal_errors import with_errors_cleared
from stationmaster.control.states import ended, queued
from stationmaster.control.states.executing import handler as executing
from stationmaster.control.states.fetching import handler as fetching
from stationmaster.control.states.finalizing import handler as finalizing
from stationmaster.control.states.provisioning import handler as provisioning
from stationmaster.control.states.releasing import handler as releasing
from stationmaster.control.states.transferring import handler as transferring
from stationmaster.event_log import get_logger
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

log = get_logger("stationmaster.reconcile")

_MOST_VISITS = 40  # in a row; a job that always finds something to do leaves its slot to others now and then


class LeasedJob(Guard, Protocol):
    """A job under a worker's lease; `lease` is as it was last read or written between two visits."""

    lease: Lease

    async def record(self, write: Write) -> Lease:
        """Write and keep the lease; returns it as it is now. Raises LeaseLost, StoreError."""

    async def settle(self, write: Write) -> None:
        """Write and hand the lease back. Raises LeaseLost, StoreError."""

    async def record_midway(self, write: Write) -> None:
        """Write in the middle of an action, which goes on. Raises LeaseLost, StoreError."""


async def reconcile(held: LeasedJob, world: World) -> None:
    """Take a job as far as it goes without waiting. Raises LeaseLost when another worker has it by now."""
    visits = 1
    learnt = await _visit(held, world)
    while learnt.due_in == 0.0 and learnt.job.state in HANDLERS and visits < _MOST_VISITS:
        held.lease = await held.record(learnt)
        learnt = await _visit(held, world)
        visits += 1
    await held.settle(learnt)


async def _visit(held: LeasedJob, world: World) -> Write:
    """observe → decide → record → perform; returns what is still to be written."""
    lease = held.lease
    handler = HANDLERS[lease.job.state]
    job = _with_wish_seen(lease.job)  # every write from here on has taken this wish into account
    visit = Visit(
        job=job,
        now=lease.now,
        watched=lease.watched,
        guard=held,
        record=held.record_midway,
        rules=world.rules(job),
    )
    seen = await handler.observe(visit, world)
    step = await decided(handler, seen, world)
    _log_decision(step, job)
    if step.then is None:
        assert step.write is not None, "a step writes or acts"
        return with_errors_cleared(step.write)
    if step.write is not None:
        # Due at once: a worker that takes over from one that died in between must not wait for the next look.
        # What people want by now is not taken up here: a change of it interrupts the action.
        intent = step.write if step.write.due_in == 0.0 else changed(step.write, due_in=0.0)
        held.lease = changed(lease, texts=(await held.record(intent)).texts)
        job = step.write.job
    with log.timed("visit.performed", job=job.id, state=job.state.value, action=type(step.then).__name__):
        return with_errors_cleared(await handler.perform(step.then, job, seen, world))


def _log_decision(step: Step[Any], job: Job) -> None:
    write = step.write
    log.debug(
        "visit.decided",
        job=job.id,
        attempt=job.attempt,
        state=job.state.value,
        next_state=None if write is None else write.job.state.value,
        events=[] if write is None else [event.kind for event in write.events],
        due_in=None if write is None else write.due_in,
        action=None if step.then is None else type(step.then).__name__,
    )


def _with_wish_seen(job: Job) -> Job:
    return job if job.seen_seq == job.desired_seq else changed(job, seen_seq=job.desired_seq)
