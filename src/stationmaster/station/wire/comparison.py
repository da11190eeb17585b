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
    """Id of the job."""
    name: str
    """Its name."""
    shown: str
    """Its outcome or state."""
    reason: str | None
    """Why it ended; null before."""
    health: str | None
    """By the analysis of its training."""
    recipe: str
    """The recipe, as `name@version`."""
    provider: str
    """Where it ran."""
    dataset: str
    """Where its dataset came from."""
    dataset_sha256: str
    """SHA-256 of the packed dataset."""
    images: int
    """Images in its dataset."""
    trigger: str | None
    """Its trigger word."""
    gpu: str | None
    """The GPU that it ran on."""
    quoted_hours: float
    """Hours that were expected."""
    hours: float
    """On its machines, all attempts together."""
    quoted_cost_usd: Usd
    """Cost that was expected."""
    cost_usd: Usd
    """What it cost so far."""
    step: int | None
    """The last step that it reached."""
    total_steps: int | None
    """Steps that were asked for."""
    steps_per_second: Number | None
    """Its speed."""
    first_loss: Number | None
    """The first loss that was read."""
    last_loss: Number | None
    """The last loss that was read."""
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
    """Name of the parameter."""
    values: tuple[Any, ...]
    """One for each job, in their order; null: it has no such parameter."""


class ComparisonDocument(Document):
    """Jobs side by side, in the order in which they were named."""

    jobs: tuple[ComparedJobDocument, ...]
    """The jobs, in the order that was asked for."""
    differences: tuple[DifferenceDocument, ...]
    """Parameters that differ."""
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
