"""QUEUED: accepted, nothing rented. A worker opens the first attempt."""

from __future__ import annotations

from typing import NoReturn

from stationmaster.control.billing.paying import with_claim
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step, give_up, go_on, wants_out_early
from stationmaster.control.flow.world import Visit, World
from stationmaster.lifecycle import Move
from stationmaster.model import Job, Reason
from stationmaster.model.copying import changed
from stationmaster.store.writes import Write


async def observe(visit: Visit, _world: World) -> Visit:
    return visit


def decide(visit: Visit, policy: Policy) -> Step[NoReturn]:
    job = visit.job
    if wants_out_early(job):
        explanation = "cancelled before anything was rented"
        return Step(write=give_up(job, Reason.CANCELLED_BY_USER, now=visit.now, explanation=explanation))
    write = go_on(changed(job, attempt=1), Move.CLAIMED, now=visit.now)
    return Step(write=with_claim(write, job, policy, now=visit.now))


async def perform(_action: NoReturn, job: Job, _visit: Visit, _world: World) -> Write:
    raise AssertionError("a queued job needs nothing done")


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
