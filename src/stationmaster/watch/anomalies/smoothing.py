"""Loss curves made comparable: finite values, in blocks of equal length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from stationmaster.watch.anomalies.base import LossPoint


def finite(losses: Sequence[LossPoint]) -> list[LossPoint]:
    return [point for point in losses if math.isfinite(point.loss)]


def block_medians(losses: Sequence[LossPoint], blocks: int) -> list[float]:
    """The median loss of each of so many equal parts of the curve; medians, so that single spikes do not count.

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
