"""Jobs with everything that belongs to them: one query for each kind of thing, however many jobs there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stationmaster.lifecycle import progress_shown, shown, stage
from stationmaster.model import Access, Job, Rental, RentalState, State
from stationmaster.money import MicroDollars
from stationmaster.station.jobs import JobView
from stationmaster.store.store import Store

_AT_ONCE = 500  # databases limit the number of values in a query


def views_of(store: Store, jobs: Sequence[Job]) -> list[JobView]:
    """The views of the jobs, in their order."""
    found: list[JobView] = []
    for first in range(0, len(jobs), _AT_ONCE):
        found += _views_of(store, jobs[first : first + _AT_ONCE])
    return found


def _views_of(store: Store, jobs: Sequence[Job]) -> list[JobView]:
    ids = [job.id for job in jobs]
    judged = [job.id for job in jobs if job.outcome or job.ending.analysed]
    with_model = [job.id for job in jobs if job.model.file is not None]
    now = store.now()
    costs, rentals = store.costs.of_jobs(ids), store.rentals.of_jobs(ids)
    checkpoints, alerts = store.checkpoints.of_jobs(ids), store.alerts.open_of_jobs(ids)
    health = store.analyses.health_of(judged) if judged else {}
    models = store.models.of_jobs(with_model) if with_model else {}
    found = []
    for job in jobs:
        peak, size = job.watching.gpu_peak_gib or (None, None)
        found.append(
            JobView(
                job=replace(job, progress=progress_shown(job)),
                now=now,
                shown=shown(job, now=now),
                stage=stage(job, is_released=is_released(rentals[job.id])),
                cost=MicroDollars(sum(line.so_far(now=now) for line in costs[job.id])),
                rentals=tuple(rentals[job.id]),
                costs=tuple(costs[job.id]),
                checkpoints=tuple(checkpoints[job.id]),
                alerts=tuple(alerts[job.id]),
                access=_access(job),
                health=health.get(job.id),
                trained=models.get(job.id),
                peak_gpu_gib=peak,
                gpu_gib=size,
                last_steps_per_second=job.progress.steps_per_second,
            )
        )
    return found


def is_released(rentals: Sequence[Rental]) -> bool:
    """Whether there were machines, and all are confirmed gone."""
    return bool(rentals) and all(rental.state is RentalState.GONE for rental in rentals)


def _access(job: Job) -> Access | None:
    return job.machine.access if job.state is not State.ENDED else None
