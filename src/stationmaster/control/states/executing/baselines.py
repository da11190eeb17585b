"""A run beside past ones of its recipe on its GPU: what is unusual now, and what is remembered of it at its end."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.flow.world import World
from stationmaster.control.states.executing.vitals import gpu_samples
from stationmaster.model import Job
from stationmaster.watch.anomalies.base import Anomaly
from stationmaster.watch.baseline import RunFacts, facts_of, find_outliers

COMPARED_AT_PERCENT = (5, 10, 25, 50, 75, 95)
NO_GPU = "no GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is unusual in a run, seen when it had passed so much of its way."""

    percent: int
    outliers: tuple[Anomaly, ...]


def comparison_due(job: Job) -> int | None:
    """The mark that the run has passed without having been compared since; a few looks tell as much as all."""
    progress = job.progress
    if progress.step is None or not progress.total_steps:
        return None
    passed = [mark for mark in COMPARED_AT_PERCENT if mark <= 100 * progress.step / progress.total_steps]
    return passed[-1] if passed and passed[-1] > job.watching.compared else None


async def compare(job: Job, world: World) -> Comparison | None:
    """The run so far beside past ones, where a comparison is due. Only reads."""
    percent = comparison_due(job)
    if percent is None:
        return None
    past = await world.past_runs.of((job.spec.recipe, _gpus(job)))
    outliers = find_outliers(await world.ask_store(_facts, job, world), past) if past else ()
    return Comparison(percent=percent, outliers=tuple(outliers))


async def facts_to_remember(job: Job, world: World) -> RunFacts | None:
    """What later runs are compared with, of a run that has finished."""
    return await world.ask_store(_facts, job, world) if job.progress.total_steps else None


def _facts(job: Job, world: World) -> RunFacts:
    readings = world.store.readings.sampled(job.id, attempt=job.attempt)
    return facts_of(
        readings,
        gpu_samples(job),
        recipe=job.spec.recipe,
        gpu=_gpus(job),
        total_steps=job.progress.total_steps or 1,
    )


def _gpus(job: Job) -> str:
    """As the offer named them, so that all runs on them are found whatever the machine's driver calls them."""
    return job.machine.gpus or NO_GPU
