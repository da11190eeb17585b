"""Jobs side by side: what was different about them, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from stationmaster.errors import UserError
from stationmaster.money import MicroDollars
from stationmaster.station.jobs import JobView

MOST_JOBS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedJob:
    """What one job was and what came of it; None where it is not known."""

    id: str
    name: str
    shown: str  # outcome or state
    reason: str | None
    health: str | None  # by the analysis of its training
    recipe: str
    provider: str
    dataset: str  # without the folders before its name
    dataset_sha256: str
    images: int
    trigger: str | None
    gpu: str | None
    quoted_hours: float
    hours: float  # on its machines, all attempts together
    quoted_cost: MicroDollars
    cost: MicroDollars
    step: int | None
    total_steps: int | None
    steps_per_second: float | None
    first_loss: float | None
    last_loss: float | None
    predicted_gpu_gib: float | None
    peak_gpu_gib: float | None
    gpu_gib: float | None  # the memory that the GPU has


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Jobs side by side, in the order in which they were named."""

    jobs: tuple[ComparedJob, ...]
    differing: Mapping[str, tuple[Any, ...]]  # values of each job by parameter; None: it has no such parameter
    same_parameters: int  # number of parameters whose value all of them share


def require_comparable(references: Sequence[str]) -> None:
    """Raises UserError unless there are two to ten of them."""
    if not 2 <= len(references) <= MOST_JOBS:
        raise UserError(f"two to {MOST_JOBS} jobs can be compared, not {len(references)}", hint="name each job once")


def compare(views: Sequence[JobView]) -> Comparison:
    """Raises UserError if one job is there twice."""
    ids = [view.job.id for view in views]
    for job_id in ids:
        if ids.count(job_id) > 1:
            raise UserError(f"job {job_id} cannot be compared with itself", hint="name each job once")
    names = sorted({name for view in views for name in view.job.spec.parameters})
    values = {name: tuple(view.job.spec.parameters.get(name) for view in views) for name in names}
    differing = {name: each for name, each in values.items() if any(value != each[0] for value in each)}
    return Comparison(
        jobs=tuple(_compared(view) for view in views),
        differing=differing,
        same_parameters=len(values) - len(differing),
    )


def _compared(view: JobView) -> ComparedJob:
    job, spec, progress = view.job, view.job.spec, view.job.progress
    return ComparedJob(
        id=job.id,
        name=spec.name,
        shown=view.shown,
        reason=job.reason,
        health=None if view.health is None else view.health.health,
        recipe=spec.recipe,
        provider=spec.provider,
        dataset=PurePosixPath(spec.dataset.source).name or spec.dataset.source,
        dataset_sha256=spec.dataset.sha256,
        images=spec.dataset.images,
        trigger=spec.trigger,
        gpu=_gpu(view),
        quoted_hours=spec.quote.hours_expected,
        hours=view.rented_seconds / 3600,
        quoted_cost=spec.quote.cost_expected,
        cost=view.cost,
        step=progress.step,
        total_steps=progress.total_steps,
        steps_per_second=view.last_steps_per_second,
        first_loss=progress.first_loss,
        last_loss=progress.loss,
        predicted_gpu_gib=spec.quote.memory_expected_gib,
        peak_gpu_gib=view.peak_gpu_gib,
        gpu_gib=view.gpu_gib,
    )


def _gpu(view: JobView) -> str | None:
    """The GPUs of its last machine; a job that gave its machine back still has the offer that it took."""
    offered = [rental.offer.gpus_text for rental in view.rentals if rental.offer is not None and not rental.surplus]
    return view.job.machine.gpus or (offered[-1] if offered else None)
