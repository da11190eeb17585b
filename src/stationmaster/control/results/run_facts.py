"""What is remembered of a finished run, for later runs of its recipe on its GPU to be compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from stationmaster.control.flow.world import World
from stationmaster.model import Job
from stationmaster.model.copying import changed
from stationmaster.watch.anomalies.base import GpuSample
from stationmaster.watch.baseline import RunFacts, facts_of

NO_GPU = "no GPU"
_MIB = 1024 * 1024


async def facts_to_remember(job: Job, world: World) -> RunFacts | None:
    """The facts of a run that has finished; None where its number of steps is unknown. Only reads."""
    if not job.progress.total_steps:
        return None
    peak, size = job.watching.gpu_peak_gib or (None, None)
    return changed(await facts_so_far(job, world), peak_gpu_gib=peak, gpu_gib=size)


async def facts_so_far(job: Job, world: World) -> RunFacts:
    """The facts of the current attempt, from its stored readings and its GPU samples. Only reads."""
    return await world.ask_store(_read_facts, job, world)


def gpus_of(job: Job) -> str:
    """The GPUs as the offer named them: the machine's driver may call them differently, and one name finds all runs."""
    return job.machine.gpus or NO_GPU


def gpu_samples(rows: Iterable[Sequence[Any]]) -> list[GpuSample]:
    """The samples of one GPU, from the rows that are kept with the job."""
    return [
        GpuSample(
            at=at,
            utilization_percent=use,
            memory_used_bytes=None if used is None else used * _MIB,
            memory_total_bytes=None if total is None else total * _MIB,
        )
        for at, use, used, total in rows
    ]


def _read_facts(job: Job, world: World) -> RunFacts:
    return facts_of(
        world.store.readings.sampled(job.id, attempt=job.attempt),
        [gpu_samples(rows) for rows in (job.watching.vitals or {}).get("gpus", ())],
        recipe=job.spec.recipe,
        gpu=gpus_of(job),
        total_steps=job.progress.total_steps or 1,
    )
