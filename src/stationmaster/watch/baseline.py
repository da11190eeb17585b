"""What is usual for a recipe on a GPU, learnt from past runs; finds nothing until there are enough of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from stationmaster.watch.anomalies.base import Anomaly, Confidence, GpuSample

_RUNS_AT_LEAST = 3
_SPREADS = 6.0
_SURE_SPREADS = 12.0
_SPREAD_TO_DEVIATION = 1.4826  # median distance -> standard deviation of a bell curve
_SPREAD_AT_LEAST = 0.03  # no run repeats another to the last percent
_PACES_AT_LEAST = 5  # fewer do not give a run's pace
_CURVE_POINTS = 20


class StepLike(Protocol):
    """The part of a stored reading that gives pace and loss."""

    @property
    def at(self) -> float: ...
    @property
    def step(self) -> int: ...
    @property
    def loss(self) -> float | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Measures of a run, or of the part of it so far; None where unknown."""

    recipe: str
    gpu: str
    step_seconds: float | None = None
    memory_bytes: float | None = None
    gpu_percent: float | None = None
    loss_by_progress: tuple[tuple[float, float], ...] = ()  # (part of the run, loss), rising parts
    peak_gpu_gib: float | None = None  # of the fullest GPU in the whole run, by the machine's own samples
    gpu_gib: float | None = None  # the memory that this GPU has


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    name: str
    value: float
    past: list[float]
    unit: str = ""
    where: str = ""
    is_bad_when_low: bool = False


def facts_of(
    readings: Sequence[StepLike], gpus: Iterable[Sequence[GpuSample]] = (), *, recipe: str, gpu: str, total_steps: int
) -> RunFacts:
    """The measures of a run, or of the part of it so far, from its readings."""
    samples = [sample for one in gpus for sample in one]
    used = [sample.memory_used_bytes for sample in samples if sample.memory_used_bytes is not None]
    busy = [sample.utilization_percent for sample in samples if sample.utilization_percent is not None]
    return RunFacts(
        recipe=recipe,
        gpu=gpu,
        step_seconds=_step_seconds(readings),
        memory_bytes=max(used, default=None),
        gpu_percent=median(busy) if busy else None,
        loss_by_progress=_curve(readings, total_steps),
    )


def find_outliers(run: RunFacts, past: Sequence[RunFacts]) -> list[Anomaly]:
    """Where a run differs from past ones of the same recipe and GPU; empty without history."""
    same = [facts for facts in past if (facts.recipe, facts.gpu) == (run.recipe, run.gpu)]
    outliers = (_compare(measure, run) for measure in _measures(run, same) if len(measure.past) >= _RUNS_AT_LEAST)
    return [outlier for outlier in outliers if outlier is not None]


def _step_seconds(readings: Sequence[StepLike]) -> float | None:
    """The usual time between two steps: pauses for saving and sampling are too few to move a median.

    Steps that were read at once share one time, so only the last of each moment counts.
    """
    moments = sorted({reading.at: reading.step for reading in readings}.items())
    paces = [
        (later - earlier) / (after - before)
        for (earlier, before), (later, after) in itertools.pairwise(moments)
        if after > before
    ]
    return median(paces) if len(paces) >= _PACES_AT_LEAST else None


def _curve(readings: Sequence[StepLike], total_steps: int) -> tuple[tuple[float, float], ...]:
    """The loss over the run in a few points, each the median of its part."""
    parts: dict[int, list[StepLike]] = {}
    for reading in readings:
        if reading.loss is not None and math.isfinite(reading.loss):
            parts.setdefault(min(_CURVE_POINTS * reading.step // total_steps, _CURVE_POINTS - 1), []).append(reading)
    return tuple(
        (median(one.step for one in found) / total_steps, median(one.loss for one in found if one.loss is not None))
        for _, found in sorted(parts.items())
    )


def _measures(run: RunFacts, past: Sequence[RunFacts]) -> list[_Measure]:
    measures = []
    if run.step_seconds is not None:
        known = [facts.step_seconds for facts in past if facts.step_seconds is not None]
        measures.append(_Measure(name="step time", unit=" s", value=run.step_seconds, past=known))
    if run.memory_bytes is not None:
        known = [facts.memory_bytes / 2**30 for facts in past if facts.memory_bytes is not None]
        measures.append(_Measure(name="GPU memory", unit=" GiB", value=run.memory_bytes / 2**30, past=known))
    if run.gpu_percent is not None:
        known = [facts.gpu_percent for facts in past if facts.gpu_percent is not None]
        measures.append(_Measure(name="GPU use", unit=" %", value=run.gpu_percent, past=known, is_bad_when_low=True))
    if run.loss_by_progress:
        part, loss = run.loss_by_progress[-1]
        known = [value for facts in past if (value := _loss_at(facts, part)) is not None]
        measures.append(_Measure(name="loss", where=f" at {100 * part:.0f} %", value=loss, past=known))
    return measures


def _loss_at(facts: RunFacts, part: float) -> float | None:
    """A past run's loss at the same part of the run, interpolated between two points."""
    curve = facts.loss_by_progress
    for (low, before), (high, after) in itertools.pairwise(curve):
        if low <= part <= high and high > low:
            return before + (part - low) / (high - low) * (after - before)
    return None


def _compare(measure: _Measure, run: RunFacts) -> Anomaly | None:
    usual = median(measure.past)
    distance = median(abs(value - usual) for value in measure.past) * _SPREAD_TO_DEVIATION
    deviation = max(distance, _SPREAD_AT_LEAST * abs(usual))
    excess = (usual - measure.value) if measure.is_bad_when_low else (measure.value - usual)
    if deviation == 0 or excess / deviation < _SPREADS:
        return None
    shown = f"{measure.name}{measure.where} is {measure.value:.3g}{measure.unit}, usually {usual:.3g}{measure.unit}"
    return Anomaly(
        kind="baseline",
        about=measure.name,
        evidence=f"{shown} in {len(measure.past)} runs of {run.recipe} on {run.gpu}",
        confidence=Confidence.HIGH if excess / deviation >= _SURE_SPREADS else Confidence.MEDIUM,
    )
