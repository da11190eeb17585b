"""A loss far above its neighbours: a bad batch, or the beginning of worse."""

from __future__ import annotations

from statistics import median

from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals
from stationmaster.watch.anomalies.smoothing import finite, spread

_NEIGHBOURS = 50
_NEIGHBOURS_AT_LEAST = 20
_SPREADS = 10.0
_FACTOR = 2.0
_RECENT = 3


def find_loss_spike(vitals: Vitals) -> Anomaly | None:
    """The last losses stand far outside the spread of those before and at least at twice their height."""
    points = finite(vitals.losses)
    before = [point.loss for point in points[-_NEIGHBOURS - _RECENT : -_RECENT]]
    if len(before) < _NEIGHBOURS_AT_LEAST:
        return None
    middle = median(before)
    limit = max(middle + _SPREADS * spread(before), _FACTOR * middle)
    high = [point for point in points[-_RECENT:] if point.loss > limit]
    if not high or points[-1].loss <= limit:
        return None
    return Anomaly(
        kind="loss_spike",
        evidence=f"loss {high[-1].loss:.3g} at step {high[-1].step}, usually {middle:.3g}",
        confidence=Confidence.MEDIUM if len(high) == _RECENT else Confidence.LOW,
    )
