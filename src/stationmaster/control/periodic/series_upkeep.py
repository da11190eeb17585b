"""Upkeep of the measured values in the store: small blocks are merged, old values thinned and, if set, deleted."""

from __future__ import annotations

from stationmaster.control.flow.world import World

_MOST_JOBS = 50  # of one kind of upkeep in one run; the rest follows in the next


async def keep_up_series(world: World) -> None:
    """Do what is due, job by job. May be interrupted anywhere.

    The values of a machine that was monitored without a job count from its last one, as those of a job from its end.
    """
    series, metrics = world.store.series, world.policy.metrics
    now = await world.now()
    for job_id in await world.ask_store(series.jobs_to_merge, limit=_MOST_JOBS):
        await world.ask_store(series.merge, job_id)
    if metrics.retention:
        old = await world.ask_store(series.jobs_to_clear, ended_before=now - metrics.retention, limit=_MOST_JOBS)
        gone = await world.ask_store(series.machines_to_clear, last_before=now - metrics.retention, limit=_MOST_JOBS)
        for job_id in (*old, *gone):
            await world.ask_store(series.clear, job_id)
        await world.ask_store(world.store.analyses.clear_old, ended_before=now - metrics.retention)
    if metrics.full_resolution:
        before = now - metrics.full_resolution
        old = await world.ask_store(series.jobs_to_thin, ended_before=before, limit=_MOST_JOBS)
        gone = await world.ask_store(series.machines_to_thin, last_before=before, limit=_MOST_JOBS)
        for job_id in (*old, *gone):
            await world.ask_store(series.thin, job_id)
