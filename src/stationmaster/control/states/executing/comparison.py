"""A run beside past ones of its recipe on its GPU: what is unusual, checked at a few points of its way."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.flow.world import World
from stationmaster.control.results.run_facts import facts_so_far, gpus_of
from stationmaster.model import Job
from stationmaster.watch.anomalies.base import Anomaly
from stationmaster.watch.baseline import find_outliers

COMPARED_AT_PERCENT = (5, 10, 25, 50, 75, 95)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was unusual in a run when it had passed this percentage of its steps."""

    percent: int
    outliers: tuple[Anomaly, ...]


def comparison_due(job: Job) -> int | None:
    """The percentage at which a comparison is due: the last one passed, unless it was compared there already.

    A few comparisons find as much as one at every look would.
    """
    progress = job.progress
    if progress.step is None or not progress.total_steps:
        return None
    passed = [mark for mark in COMPARED_AT_PERCENT if mark <= 100 * progress.step / progress.total_steps]
    return passed[-1] if passed and passed[-1] > job.watching.compared else None


async def compare(job: Job, world: World) -> Comparison | None:
    """The run so far beside past ones, if a comparison is due. Only reads."""
    percent = comparison_due(job)
    if percent is None:
        return None
    past = await world.past_runs.of((job.spec.recipe, gpus_of(job)))
    outliers = find_outliers(await facts_so_far(job, world), past) if past else ()
    return Comparison(percent=percent, outliers=tuple(outliers))
