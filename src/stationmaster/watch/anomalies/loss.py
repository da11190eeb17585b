"""Rules about the loss curve: not a number, diverging, spiking, flat."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import median

from stationmaster.watch.anomalies.base import Anomaly, Confidence, LossPoint, Vitals

_ZEROS_IN_A_ROW = 3

_DIVERGENCE_MIN_POINTS = 60
_DIVERGENCE_BLOCKS = 12
_DIVERGENCE_FACTOR = 1.5
_SURE_DIVERGENCE_FACTOR = 3.0
_RISING_BLOCKS = 3

_SPIKE_NEIGHBOURS = 50
_SPIKE_MIN_NEIGHBOURS = 20
_SPIKE_SPREADS = 10.0
_SPIKE_FACTOR = 2.0
_SPIKE_RECENT = 3

_PLATEAU_MIN_POINTS = 200
_PLATEAU_BLOCKS = 10
_FLAT_BLOCKS = 5
_PLATEAU_GAIN = 0.01


def find_nan_loss(vitals: Vitals) -> Anomaly | None:
    """The loss or its gradient is nan or inf, or silently broken: exactly 0 with nan gradients, or 0 several times."""
    if not vitals.losses:
        return None
    last = vitals.losses[-1]
    if not math.isfinite(last.loss):
        return _nan_loss(f"loss is {last.loss} at step {last.step}", Confidence.HIGH)
    if last.gradient_norm is not None and not math.isfinite(last.gradient_norm):
        shown = f"gradient norm is {last.gradient_norm} at step {last.step} (loss {last.loss:g})"
        return _nan_loss(shown, Confidence.HIGH if last.loss == 0 else Confidence.MEDIUM)
    recent = vitals.losses[-_ZEROS_IN_A_ROW:]
    if len(recent) == _ZEROS_IN_A_ROW and all(point.loss == 0 for point in recent) and _was_above_zero(vitals.losses):
        return _nan_loss(f"loss has been exactly 0 since step {recent[0].step}", Confidence.MEDIUM)
    return None


def find_divergence(vitals: Vitals) -> Anomaly | None:
    """The loss is at least 1.5 times its best and has risen over the last quarter of the run."""
    if len(finite(vitals.losses)) < _DIVERGENCE_MIN_POINTS:
        return None
    blocks = block_medians(vitals.losses, _DIVERGENCE_BLOCKS)
    best, now = min(blocks[:-_RISING_BLOCKS]), blocks[-1]
    last = blocks[-_RISING_BLOCKS - 1 :]
    keeps_rising = all(later > earlier for earlier, later in itertools.pairwise(last))
    if best <= 0 or now < _DIVERGENCE_FACTOR * best or not keeps_rising:
        return None
    return Anomaly(
        kind="divergence",
        evidence=f"loss rose from its best of {best:.3g} to {now:.3g} and keeps rising",
        confidence=Confidence.HIGH if now >= _SURE_DIVERGENCE_FACTOR * best else Confidence.MEDIUM,
    )


def find_loss_spike(vitals: Vitals) -> Anomaly | None:
    """The last losses are far outside the spread of those before them, and at least twice as high."""
    points = finite(vitals.losses)
    before = [point.loss for point in points[-_SPIKE_NEIGHBOURS - _SPIKE_RECENT : -_SPIKE_RECENT]]
    if len(before) < _SPIKE_MIN_NEIGHBOURS:
        return None
    middle = median(before)
    limit = max(middle + _SPIKE_SPREADS * spread(before), _SPIKE_FACTOR * middle)
    high = [point for point in points[-_SPIKE_RECENT:] if point.loss > limit]
    if not high or points[-1].loss <= limit:
        return None
    return Anomaly(
        kind="loss_spike",
        evidence=f"loss is {high[-1].loss:.3g} at step {high[-1].step}, usually {middle:.3g}",
        confidence=Confidence.MEDIUM if len(high) == _SPIKE_RECENT else Confidence.LOW,
    )


def find_plateau(vitals: Vitals) -> Anomaly | None:
    """Over the last half of the run the loss fell by less than 1 %, although it had fallen before."""
    points = finite(vitals.losses)
    if len(points) < _PLATEAU_MIN_POINTS:
        return None
    blocks = block_medians(points, _PLATEAU_BLOCKS)
    early, late = blocks[:-_FLAT_BLOCKS], blocks[-_FLAT_BLOCKS:]
    noise = spread([point.loss for point in points]) / 2
    has_learnt = early[0] > 0 and early[0] - early[-1] > max(_PLATEAU_GAIN * early[0], noise)
    gained = early[-1] - min(late)
    if not has_learnt or gained > _PLATEAU_GAIN * abs(early[-1]):
        return None
    since = points[len(points) // _PLATEAU_BLOCKS * (_PLATEAU_BLOCKS - _FLAT_BLOCKS)].step
    evidence = f"loss has stayed at about {late[-1]:.3g} since step {since}"
    return Anomaly(kind="plateau", evidence=evidence, confidence=Confidence.LOW)


def finite(losses: Sequence[LossPoint]) -> list[LossPoint]:
    return [point for point in losses if math.isfinite(point.loss)]


def block_medians(losses: Sequence[LossPoint], blocks: int) -> list[float]:
    """The median loss of each of `blocks` equal parts of the curve; medians, so that single spikes do not count.

    >>> block_medians([LossPoint(at=n, step=n, loss=n) for n in range(6)], 2)
    [1, 4]
    """
    values = [point.loss for point in finite(losses)]
    size = len(values) // blocks
    return [median(values[index * size : (index + 1) * size]) for index in range(blocks)] if size else []


def spread(values: Sequence[float]) -> float:
    """Median distance from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _was_above_zero(losses: Sequence[LossPoint]) -> bool:
    return any(point.loss > 0 for point in losses)


def _nan_loss(evidence: str, confidence: Confidence) -> Anomaly:
    return Anomaly(kind="nan_loss", evidence=evidence, confidence=confidence)
