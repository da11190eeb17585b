"""ENDED: nothing more happens. A request that came too late is marked as seen."""

from __future__ import annotations

from typing import NoReturn

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step
from stationmaster.control.flow.world import Visit, World
from stationmaster.model import Job
from stationmaster.store.writes import Write


async def observe(visit: Visit, _world: World) -> Visit:
    return visit


def decide(visit: Visit, _policy: Policy) -> Step[NoReturn]:
    return Step(write=Write(job=visit.job, due_in=None))


async def perform(_action: NoReturn, job: Job, _visit: Visit, _world: World) -> Write:
    raise AssertionError("an ended job needs nothing done")


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
