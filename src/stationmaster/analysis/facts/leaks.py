"""Memory that grows from the first step to the last although nothing about the training changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.pools import Level, Pool

if TYPE_CHECKING:
    from stationmaster.analysis.facts.run_facts import RunFacts

_LEAST_GROWTH = 0.10
_LEAST_PER_QUARTER = 0.005
_LEAST_SAMPLES = 24
_AROUND = 3
_SAMPLING_PART = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    grown_gb: float
    first_gb: float
    hours: float
    at_samplings_gb: float

    @property
    def is_at_samplings(self) -> bool:
        return self.at_samplings_gb >= _SAMPLING_PART * self.grown_gb


def leak_in(facts: RunFacts, pool: Pool) -> Leak | None:
    """Return the leak of a pool: 10 points or more of growth, in every quarter, with batch and workers unchanged."""
    levels = pool.in_training(facts.phases)
    if len(levels) < _LEAST_SAMPLES or not _is_unchanged(facts, levels):
        return None
    marks = [_around(levels, place * (len(levels) - 1) // 4) for place in range(5)]
    rises = [later - earlier for earlier, later in pairwise(marks)]
    grown = marks[-1] - marks[0]
    if grown < _LEAST_GROWTH * pool.size_gb or min(rises) < _LEAST_PER_QUARTER * pool.size_gb:
        return None
    return Leak(
        grown_gb=grown,
        first_gb=marks[0],
        hours=(levels[-1].at - levels[0].at) / 3600,
        at_samplings_gb=_growth_at_samplings(facts, levels),
    )


def _is_unchanged(facts: RunFacts, levels: Sequence[Level]) -> bool:
    batches = {size for size in (facts.steps.values("batch_size") if facts.steps is not None else []) if size}
    workers = {level.workers for level in levels if level.workers is not None}
    return len(batches) <= 1 and len(workers) <= 1 and not facts.events_of_kind("batch_size_adjustment")


def _around(levels: Sequence[Level], place: int) -> float:
    near = levels[max(0, place - _AROUND) : place + _AROUND + 1]
    return median(level.used_gb for level in near)


def _growth_at_samplings(facts: RunFacts, levels: Sequence[Level]) -> float:
    grown = 0.0
    for pause in facts.phases.pauses:
        if pause.phase is not RunPhase.SAMPLING:
            continue
        before = [level.used_gb for level in levels if level.at < pause.start][-_AROUND:]
        after = [level.used_gb for level in levels if level.at > pause.end][:_AROUND]
        if before and after:
            grown += median(after) - median(before)
    return grown
