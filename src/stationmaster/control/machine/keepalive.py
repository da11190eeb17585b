"""Keeps a rented machine alive: its own guard stops it when no worker has visited for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stationmaster.control.flow.world import Visit
from stationmaster.errors import RemoteError
from stationmaster.model import Job
from stationmaster.remote.host import Host

_VISIT_SECONDS = 300.0
_SPARE_SECONDS = 600.0  # past the hard limit, for a worker to fetch the model


def alone_seconds(job: Job, *, now: float) -> float:
    """How long the training may go on without a visit: until the job's hard limit, and a little more."""
    if job.deadline_at is None:
        return job.spec.max_seconds
    return max(0.0, job.deadline_at - now) + _SPARE_SECONDS


@asynccontextmanager
async def keepalive(host: Host, visit: Visit) -> AsyncIterator[None]:
    """Visit the machine at intervals during a long action, so that its guard does not stop it."""
    seconds = alone_seconds(visit.job, now=visit.now)
    task = asyncio.create_task(_visit_repeatedly(host, seconds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _visit_repeatedly(host: Host, seconds: float) -> None:
    while True:
        try:
            await host.visit(seconds)
        except RemoteError:
            pass  # the action itself reports a machine that does not answer
        await asyncio.sleep(_VISIT_SECONDS)
