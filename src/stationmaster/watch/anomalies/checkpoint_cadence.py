"""Checkpoints have stopped coming: a stall would now cost more than it should."""

from __future__ import annotations

import itertools
from statistics import median

from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals

_LATE_FACTOR = 1.5
_KNOWN_AT_LEAST = 3


def find_broken_cadence(vitals: Vitals) -> Anomaly | None:
    """Half as many steps again as usual (or as configured) have passed since the last checkpoint."""
    if vitals.step is None:
        return None
    saved = [checkpoint.step for checkpoint in vitals.checkpoints]
    every = vitals.checkpoint_every_steps or _usual_distance(saved)
    last = saved[-1] if saved else 0
    if not every or vitals.step - last <= _LATE_FACTOR * every:
        return None
    where = f"the last checkpoint is of step {last}" if saved else "no checkpoint was written"
    evidence = f"{where}, now at step {vitals.step}; one is due every {every:g} steps"
    is_configured = vitals.checkpoint_every_steps is not None
    confidence = Confidence.HIGH if is_configured else Confidence.MEDIUM
    return Anomaly(kind="checkpoint_cadence", evidence=evidence, confidence=confidence)


def _usual_distance(steps: list[int]) -> float | None:
    if len(steps) < _KNOWN_AT_LEAST:
        return None
    return median(later - earlier for earlier, later in itertools.pairwise(steps))
