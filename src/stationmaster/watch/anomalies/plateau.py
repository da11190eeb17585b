"""The loss has stopped falling long ago: the remaining steps may not be worth their price."""

from __future__ import annotations

from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals
from stationmaster.watch.anomalies.smoothing import block_medians, finite, spread

_POINTS_AT_LEAST = 200
_BLOCKS = 10
_FLAT_BLOCKS = 5
_GAIN = 0.01


def find_plateau(vitals: Vitals) -> Anomaly | None:
    """Over the last half of the run the loss fell by less than a hundredth, though it had fallen before."""
    points = finite(vitals.losses)
    if len(points) < _POINTS_AT_LEAST:
        return None
    blocks = block_medians(points, _BLOCKS)
    early, late = blocks[:-_FLAT_BLOCKS], blocks[-_FLAT_BLOCKS:]
    has_learnt = early[0] > 0 and early[0] - early[-1] > max(_GAIN * early[0], spread([p.loss for p in points]) / 2)
    gained = early[-1] - min(late)
    if not has_learnt or gained > _GAIN * abs(early[-1]):
        return None
    since = points[len(points) // _BLOCKS * (_BLOCKS - _FLAT_BLOCKS)].step
    evidence = f"loss stays at about {late[-1]:.3g} since step {since}"
    return Anomaly(kind="plateau", evidence=evidence, confidence=Confidence.LOW)
