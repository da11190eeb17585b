"""The disk will be full before the next checkpoint is written: the run would lose it, or die of it."""

from __future__ import annotations

from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals
from stationmaster.watch.anomalies.slope import fit_slope

_ROOM = 1.2
_GIB = 2**30


def find_filling_disk(vitals: Vitals) -> Anomaly | None:
    """What is free, less what is written until then, does not hold a checkpoint as large as the largest so far."""
    if not vitals.disk or not vitals.checkpoints:
        return None
    free = vitals.disk[-1].free_bytes
    needed = _ROOM * max(checkpoint.size_bytes for checkpoint in vitals.checkpoints)
    if free < needed:
        return _found(free, needed, Confidence.HIGH)
    until_next = _seconds_to_next(vitals)
    last = vitals.checkpoints[-1].at
    slope = fit_slope([(sample.at, sample.free_bytes) for sample in vitals.disk if sample.at > last])
    if until_next is None or slope is None or slope.per_second >= 0:
        return None
    then = free + slope.per_second * until_next
    return _found(then, needed, Confidence.MEDIUM) if then < needed else None


def _seconds_to_next(vitals: Vitals) -> float | None:
    every = vitals.checkpoint_every_steps
    if every is None or vitals.step is None or not vitals.steps_per_second:
        return None
    return (every - (vitals.step - vitals.checkpoints[-1].step) % every) / vitals.steps_per_second


def _found(free: float, needed: float, confidence: Confidence) -> Anomaly:
    evidence = f"{max(0.0, free) / _GIB:.1f} GiB free when the next checkpoint comes; it needs {needed / _GIB:.1f} GiB"
    return Anomaly(kind="disk_filling", evidence=evidence, confidence=confidence)
