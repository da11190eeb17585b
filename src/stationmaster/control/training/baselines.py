"""A run beside past ones of its recipe on its GPU: what is unusual now, and what is remembered of it at its end."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.training.vitals import gpu_samples
from stationmaster.control.world import World
from stationmaster.model import Job, RentalState
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
    return passed[-1] if passed and passed[-1] > int(job.memory.get("compared") or 0) else None


async def compare(job: Job, world: World) -> Comparison | None:
    """The run so far beside past ones, where a comparison is due. Only reads."""
    percent = comparison_due(job)
    if percent is None:
        return None
    return await world.ask_store(_compare, job, world, percent)


async def remember_run(job: Job, world: World) -> None:
    """A finished run joins those that later ones are compared with. May be repeated."""
    if job.progress.total_steps:
        await world.ask_store(_remember, job, world)


def _compare(job: Job, world: World, percent: int) -> Comparison:
    gpu = _gpu(job, world)
    past = world.store.past_runs.like(job.spec.recipe, gpu)
    outliers = find_outliers(_facts(job, world, gpu), past) if past else ()
    return Comparison(percent=percent, outliers=tuple(outliers))


def _remember(job: Job, world: World) -> None:
    world.store.past_runs.put(job.id, _facts(job, world, _gpu(job, world)))


def _facts(job: Job, world: World, gpu: str) -> RunFacts:
    readings = world.store.readings.sampled(job.id, attempt=job.attempt)
    return facts_of(
        readings,
        gpu_samples(job),
        recipe=job.spec.recipe,
        gpu=gpu,
        total_steps=job.progress.total_steps or 1,
    )


def _gpu(job: Job, world: World) -> str:
    """As the offer named it, so that all runs on it are found whatever the machine's driver calls it."""
    rentals = [one for one in world.store.rentals.of_job(job.id) if one.attempt == job.attempt and not one.surplus]
    offer = next((one.offer for one in rentals if one.offer and one.state is not RentalState.REQUESTED), None)
    if offer is None or not offer.gpu:
        return NO_GPU
    return offer.gpu if offer.gpus <= 1 else f"{offer.gpus} x {offer.gpu}"
