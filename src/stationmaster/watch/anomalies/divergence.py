"""The loss has turned and climbs: the training destroys what it had learnt."""

from __future__ import annotations

import itertools

from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals
from stationmaster.watch.anomalies.smoothing import block_medians, finite

_POINTS_AT_LEAST = 60
_BLOCKS = 12
_FACTOR = 1.5
_SURE_FACTOR = 3.0
_RISING_BLOCKS = 3


def find_divergence(vitals: Vitals) -> Anomaly | None:
    """The loss is half as high again as its best and has risen over the last quarter of the run."""
    if len(finite(vitals.losses)) < _POINTS_AT_LEAST:
        return None
    blocks = block_medians(vitals.losses, _BLOCKS)
    best, now = min(blocks[:-_RISING_BLOCKS]), blocks[-1]
    last = blocks[-_RISING_BLOCKS - 1 :]
    keeps_rising = all(later > earlier for earlier, later in itertools.pairwise(last))
    if best <= 0 or now < _FACTOR * best or not keeps_rising:
        return None
    return Anomaly(
        kind="divergence",
        evidence=f"loss rose from {best:.3g} at its best to {now:.3g} and keeps rising",
        confidence=Confidence.HIGH if now >= _SURE_FACTOR * best else Confidence.MEDIUM,
    )
