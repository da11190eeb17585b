"""A straight line through samples, and whether it deserves the name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, linear_regression


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    per_second: float
    fit: float  # 0: a cloud; 1: a line


def fit_slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """The line through (time, value) points; None if there is none.

    >>> fit_slope([(0, 1), (10, 2), (20, 3)])
    Slope(per_second=0.1, fit=1.0)
    """
    times, values = [point[0] for point in points], [point[1] for point in points]
    if len(points) < 3 or max(times) == min(times) or max(values) == min(values):
        return None
    line = linear_regression(times, values)
    return Slope(per_second=line.slope, fit=round(correlation(times, values) ** 2, 6))
