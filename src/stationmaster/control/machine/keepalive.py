"""Keeping a rented machine company: its guard stops it when nobody has come for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stationmaster.control.flow.world import Visit
from stationmaster.errors import RemoteError
from stationmaster.model import Job
from stationmaster.remote.host import Host

_VISIT_SECONDS = 300.0
_SPARE_SECONDS = 600.0  # past the hard limit, for home to come and fetch the model


def alone_seconds(job: Job, *, now: float) -> float:
    """How long the training may go on if home never comes back: until the job's hard limit, and a little more."""
    if job.deadline_at is None:
        return job.spec.max_seconds
    return max(0.0, job.deadline_at - now) + _SPARE_SECONDS


@asynccontextmanager
async def company(host: Host, visit: Visit) -> AsyncIterator[None]:
    """Visits go on while something long is done to the machine, so that its guard does not think it forgotten."""
    seconds = alone_seconds(visit.job, now=visit.now)
    task = asyncio.create_task(_visit_again_and_again(host, seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _visit_again_and_again(host: Host, seconds: float) -> None:
    while True:
        try:
            await host.visit(seconds)
        except RemoteError:
            pass  # what is done meanwhile will notice a machine that does not answer, and say so
        await asyncio.sleep(_VISIT_SECONDS)
