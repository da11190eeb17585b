"""Charts made of braille characters: two columns and four rows of dots in each, so that a terminal shows a curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stationmaster.series.large_numbers import share
from stationmaster.tui.lines import Line

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800
_LABEL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points in the order of `x`. `unit` belongs to the values, `top` is the greatest value that is possible."""

    title: str
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    unit: str = ""
    ends: tuple[str, str] = ("", "")  # what is written below the first and the last point
    bottom: float | None = None
    top: float | None = None
    empty: str = "nothing measured yet"


def chart_lines(curve: Curve, *, width: int, height: int) -> list[Line]:
    """A title with the last value, the curve, and its range; as many lines as `height`."""
    points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if math.isfinite(y) and math.isfinite(x)]
    lost = len(curve.y) - len(points)
    if not points:
        why = f"{lost} values are not numbers" if lost else curve.empty
        nothing: list[Line] = [((curve.title, "title"),), ((why, "dim"),)]
        return nothing[:height]
    low, high = _range([y for _, y in points], curve)
    last = f"{curve.title} {number(points[-1][1])}{curve.unit}"
    notes = f"  lowest {number(min(y for _, y in points))}{curve.unit}"
    notes += f", {lost} not a number" if lost else ""
    rows = max(1, height - 2)
    drawn = dots(points, low=low, high=high, columns=max(1, width - _LABEL - 1), rows=rows)
    lines: list[Line] = [((last, "title"), (notes, "dim"))]
    for place, row in enumerate(drawn):
        label = number(high) if place == 0 else number(low) if place == rows - 1 else ""
        lines.append(((f"{label:>{_LABEL}} ", "dim"), (row, "curve")))
    first, final = curve.ends
    gap = max(1, width - _LABEL - 1 - len(first) - len(final))
    lines.append(((" " * (_LABEL + 1) + first + " " * gap + final, "dim"),))
    return lines[:height]


def dots(points: Sequence[tuple[float, float]], *, low: float, high: float, columns: int, rows: int) -> list[str]:
    """The points as `rows` lines of braille. In each column of dots everything between the lowest and the highest
    value is filled, so that a spike of a single point is seen; gaps are bridged.
    """
    width, height = columns * 2, rows * 4
    first, last = points[0][0], points[-1][0]
    spans: dict[int, tuple[int, int]] = {}
    for x, y in points:
        place = round(share(x, first, last) * (width - 1)) if last > first else width - 1
        level = _level(y, low, high, height)
        before = spans.get(place, (level, level))
        spans[place] = min(before[0], level), max(before[1], level)
    cells = [[_BLANK] * columns for _ in range(rows)]
    for place, (bottom, top) in _bridged(spans):
        for level in range(bottom, top + 1):
            row = height - 1 - level
            cells[row // 4][place // 2] |= _DOTS[row % 4][place % 2]
    return ["".join(" " if cell == _BLANK else chr(cell) for cell in row) for row in cells]


def number(value: float) -> str:
    """
    >>> number(0.04213), number(1234567.0), number(18.25), number(0.00001)
    ('0.0421', '1.23M', '18.2', '1e-05')
    """
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _range(values: Sequence[float], curve: Curve) -> tuple[float, float]:
    low = min(values) if curve.bottom is None else min(curve.bottom, *values)
    high = max(values) if curve.top is None else max(curve.top, *values)
    if high > low:
        return low, high
    above = low + (abs(low) or 1.0)
    return (low, above) if math.isfinite(above) else (0.0, low)


def _level(value: float, low: float, high: float, height: int) -> int:
    return max(0, min(height - 1, round(share(value, low, high) * (height - 1))))


def _bridged(spans: dict[int, tuple[int, int]]) -> Iterable[tuple[int, tuple[int, int]]]:
    """Every column from the first to the last, each joined to the one before it."""
    before: tuple[int, tuple[int, int]] | None = None
    for place in sorted(spans):
        bottom, top = spans[place]
        if before is not None:
            start, (low, high) = before
            middle = (low + high) // 2
            for between in range(start + 1, place):
                level = round(middle + ((bottom + top) // 2 - middle) * (between - start) / (place - start))
                yield between, (level, level)
            if place == start + 1:  # neighbours touch, so that the curve has no holes
                bottom, top = min(bottom, high), max(top, low)
        yield place, (bottom, top)
        before = place, spans[place]
