"""What one machine measured while the app was open, in bounded memory: the curve of days keeps its highs and lows."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

from stationmaster.series.buckets import reduce_to_columns

_MOST_POINTS = 512


class PointHistory:
    """Points of one value over time. When there are too many, each pair of columns keeps its extremes."""

    def __init__(self) -> None:
        self.x = array("d")
        self.y = array("d")

    def add(self, at: float, value: float | None) -> None:
        if value is None or (self.x and at <= self.x[-1]):
            return
        self.x.append(at)
        self.y.append(value)
        if len(self.x) >= _MOST_POINTS:
            self._thin()

    def begin_with(self, x: Sequence[float], y: Sequence[float | None]) -> None:
        """Put earlier points in front."""
        first = self.x[0] if self.x else math.inf
        earlier = [(at, value) for at, value in zip(x, y, strict=True) if value is not None and at < first]
        self.x = array("d", [at for at, _ in earlier]) + self.x
        self.y = array("d", [value for _, value in earlier]) + self.y
        if len(self.x) >= _MOST_POINTS:
            self._thin()

    def _thin(self) -> None:
        points = reduce_to_columns(self.x, self.y, columns=_MOST_POINTS // 4)
        known = [(at, value) for at, value in zip(points.x, points.y, strict=True) if value is not None]
        self.x = array("d", [at for at, _ in known])
        self.y = array("d", [value for _, value in known])
