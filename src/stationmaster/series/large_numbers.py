"""Sums for any finite numbers, also where a step between them is too large for one."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """Return the mean, also of numbers whose sum is too large for one.

    >>> largest = 1.7976931348623157e308
    >>> mean([1.0, 2.0, 4.5]), mean([1.5e308, 1.7e308]), mean([largest] * 3) == largest
    (2.5, 1.6e+308, True)
    """
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        half = math.fsum(value / 2 / len(values) for value in values)
        return max(min(values), min(2 * half, max(values)))  # rounding can put it beyond them


def share(value: float, low: float, high: float) -> float:
    """Return how far the value is between the two others, 0 to 1; 0 where they are the same.

    >>> share(3.0, 2.0, 6.0), share(1.0, 1.0, 1.0), share(0.0, -1.5e308, 1.5e308), share(5e-324, 0.0, 5e-324)
    (0.25, 0.0, 0.5, 1.0)
    """
    if math.isinf(high - low):
        value, low, high = value / 2, low / 2, high / 2
    return (value - low) / (high - low) if high > low else 0.0
