"""A series as a row of characters, as wide as asked: each shows the values of its part of the run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stationmaster.series.buckets import Points

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-~=+*#"  # where a terminal cannot show blocks, by height


def sparkline(points: Points, *, width: int, levels: str = BLOCKS) -> str:
    """Return the points as at most `width` characters, blank where a part of the run has no value.

    A character shows the mean of its part; those with the lowest and the highest of all values show these, so that
    the largest spike is never lost.

    >>> sparkline(Points([1, 2, 3, 4], [0.0, 1.0, 0.5, 1.0], exact=True), width=10)
    '▁█▅█'
    >>> sparkline(Points([1, 2, 3], [2.0, 2.0, None], exact=True), width=10, levels=PLAIN)
    '=='
    """
    known = [(x, y) for x, y in zip(points.x, points.y, strict=True) if y is not None]
    if not known or width < 1:
        return ""
    parts = _parts(known, width=min(width, len(known)))
    low, high = min(y for _, y in known), max(y for _, y in known)
    return "".join(_level(_shown(part, low, high), low, high, levels) if part else " " for part in parts)


def _parts(known: Sequence[tuple[float, float]], *, width: int) -> list[list[float]]:
    first, last = known[0][0], known[-1][0]
    parts: list[list[float]] = [[] for _ in range(width)]
    for x, y in known:
        share = (x - first) / (last - first) if last > first else 0.0
        parts[min(width - 1, int(share * width))].append(y)
    return parts


def _shown(part: Sequence[float], low: float, high: float) -> float:
    if high in part:
        return high
    return low if low in part else math.fsum(part) / len(part)


def _level(value: float, low: float, high: float, levels: str) -> str:
    if high <= low:
        return levels[len(levels) // 2]
    return levels[min(len(levels) - 1, int((value - low) / (high - low) * len(levels)))]
