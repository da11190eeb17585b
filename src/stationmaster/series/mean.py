"""The mean of any finite numbers."""

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
