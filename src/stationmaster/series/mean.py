"""The mean of any finite numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """Return the mean, also of numbers whose sum is too large for one.

    >>> mean([1.0, 2.0, 4.5]), mean([1.5e308, 1.7e308])
    (2.5, 1.6e+308)
    """
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)
