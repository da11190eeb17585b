"""A series as a row of characters, as wide as asked: each shows the values of its part of the run."""

from __future__ import annotations

from stationmaster.series.buckets import Points
from stationmaster.series.large_numbers import mean, share

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-~=+*#"  # where a terminal cannot show blocks, by height


def sparkline(points: Points, *, width: int, levels: str = BLOCKS) -> str:
    """Return the points as at most `width` characters, blank where the values of a part of the run are missing.

    A character shows the mean of its part; the first with the highest or the lowest of all values shows that one, so
    that the largest spike is never lost. A part in which nothing was measured looks like the one before it.

    >>> sparkline(Points([1, 2, 3, 4], [0.0, 1.0, 0.5, 1.0], exact=True), width=10)
    '▁█▅█'
    >>> sparkline(Points([1, 2, 3], [2.0, None, 2.0], exact=True), width=10, levels=PLAIN)
    '= ='
    """
    known = [y for y in points.y if y is not None]
    if not known or width < 1:
        return ""
    low, high = min(known), max(known)
    extremes = [high, low]
    line = ""
    for part in _parts(points, width=min(width, len(points.x))):
        values = [y for y in part if y is not None]
        if values:
            shown = next((extreme for extreme in extremes if extreme in values), mean(values))
            extremes = [extreme for extreme in extremes if extreme != shown]
            line += _level(shown, low, high, levels)
        else:
            line += " " if part or not line else line[-1]
    return line


def _parts(points: Points, *, width: int) -> list[list[float | None]]:
    first, last = points.x[0], points.x[-1]
    parts: list[list[float | None]] = [[] for _ in range(width)]
    for x, y in zip(points.x, points.y, strict=True):
        parts[min(width - 1, int(share(x, first, last) * width))].append(y)
    return parts


def _level(value: float, low: float, high: float, levels: str) -> str:
    if high <= low:
        return levels[len(levels) // 2]
    return levels[min(len(levels) - 1, int(share(value, low, high) * len(levels)))]
