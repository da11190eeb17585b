"""Jobs side by side."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from stationmaster.station.comparison import ComparedJob, Comparison
from stationmaster.station.wire.document import Document, Number, Usd
from stationmaster.station.wire.plain import plain, unplain


class ComparedJobDocument(Document):
    """What one job was, and what came of it."""

    id: str
    name: str
    shown: str
    """Its outcome or state."""
    reason: str | None
    health: str | None
    """By the analysis of its training."""
    recipe: str
    provider: str
    dataset: str
    dataset_sha256: str
    images: int
    trigger: str | None
    gpu: str | None
    quoted_hours: float
    hours: float
    """On its machines, all attempts together."""
    quoted_cost_usd: Usd
    cost_usd: Usd
    step: int | None
    total_steps: int | None
    steps_per_second: Number | None
    first_loss: Number | None
    last_loss: Number | None
    predicted_gpu_gib: float | None
    """The peak of GPU memory that was expected."""
    peak_gpu_gib: float | None
    """The peak that was measured."""
    gpu_gib: float | None
    """The memory that the GPU has."""

    @classmethod
    def of(cls, job: ComparedJob) -> Self:
        fields = dataclasses.asdict(job)
        return cls(quoted_cost_usd=fields.pop("quoted_cost"), cost_usd=fields.pop("cost"), **fields)

    def value(self) -> ComparedJob:
        fields = dict(self)
        return ComparedJob(quoted_cost=fields.pop("quoted_cost_usd"), cost=fields.pop("cost_usd"), **fields)


class DifferenceDocument(Document):
    """A parameter whose value is not the same in all the jobs."""

    parameter: str
    values: tuple[Any, ...]
    """One for each job, in their order; null: it has no such parameter."""


class ComparisonDocument(Document):
    """Jobs side by side, in the order in which they were named."""

    jobs: tuple[ComparedJobDocument, ...]
    differences: tuple[DifferenceDocument, ...]
    same_parameters: int
    """How many parameters have the same value in all the jobs."""

    @classmethod
    def of(cls, comparison: Comparison) -> Self:
        return cls(
            jobs=tuple(ComparedJobDocument.of(job) for job in comparison.jobs),
            differences=tuple(
                DifferenceDocument(parameter=name, values=tuple(plain(values)))
                for name, values in comparison.differing.items()
            ),
            same_parameters=comparison.same_parameters,
        )

    def value(self) -> Comparison:
        return Comparison(
            jobs=tuple(job.value() for job in self.jobs),
            differing={one.parameter: tuple(unplain(one.values)) for one in self.differences},
            same_parameters=self.same_parameters,
        )
