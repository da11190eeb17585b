"""Reduces a series to the points that a chart of some width can show: the lowest and highest of each pixel column.

    drawn = reduce_to_columns(table.numbers("step"), table.numbers("loss"), columns=1000)
    drawn.x, drawn.y, drawn.exact

A spike of one step is always drawn. When the range holds no more points than the chart can show, all are returned as
they are, so zooming in ends at the exact values.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

_PART = 1024


@dataclass(frozen=True, slots=True)
class Points:
    """Points by ascending x; y is None where a value is missing. `exact`: these are all points of the range."""

    x: list[float]
    y: list[float | None]
    exact: bool


def reduce_to_columns(
    x: Sequence[float], y: Sequence[float], *, columns: int, start: float | None = None, end: float | None = None
) -> Points:
    """Return at most two points for each of `columns` equal parts of the range from `start` to `end`.

    `x` are steps or times; NaN in `y` is a missing value. Without `start` or `end` the range begins or ends with the
    data. A part of which all values are missing gives one point without a value.
    """
    xs, ys = _ascending(x, y)
    low = 0 if start is None else bisect_left(xs, start)
    high = len(xs) if end is None else bisect_right(xs, end)
    if high - low <= 2 * columns:
        return Points(_list(xs[low:high]), [_value(number) for number in ys[low:high]], exact=True)
    first, last = (xs[low] if start is None else start), (xs[high - 1] if end is None else end)
    places = _extreme_places(xs, ys, range(low, high), columns=columns, first=first, last=last)
    return Points([xs[place] for place in places], [_value(ys[place]) for place in places], exact=False)


def extreme_places(xs: Sequence[float], ys: Sequence[float], *, columns: int) -> list[int]:
    """Return the places of the lowest and the highest value in each of `columns` equal parts of the range of `xs`.

    `xs` ascend and are not empty. Of a part whose values are all missing, the first place is returned.
    """
    return _extreme_places(xs, ys, range(len(xs)), columns=columns, first=xs[0], last=xs[-1])


def _extreme_places(
    xs: Sequence[float], ys: Sequence[float], rows: range, *, columns: int, first: float, last: float
) -> list[int]:
    width = (last - first) / columns
    places: list[int] = []
    begin = rows.start
    for column in range(1, columns + 1):
        after = rows.stop if column == columns else bisect_left(xs, first + column * width, begin, rows.stop)
        if after > begin:
            # Numbers are made into objects part by part: fewer of them at a time stay in the processor's cache.
            places += (begin + place for place in _extremes(_list(ys[begin:after])))
            begin = after
    return places


def _extremes(part: list[float]) -> tuple[int, ...]:
    """Return the places of the lowest and the highest value in their order; the first place if all are missing."""
    known = [value for value in part if value == value] if _has_nan(part) else part
    if not known:
        return (0,)
    lowest, highest = part.index(min(known)), part.index(max(known))
    if lowest == highest:
        return (lowest,)
    return (lowest, highest) if lowest < highest else (highest, lowest)


def _ascending(x: Sequence[float], y: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return both sorted by x; points without an x are dropped."""
    if _is_ascending(x):
        return x, y
    pairs = sorted((pair for pair in zip(x, y, strict=True) if pair[0] == pair[0]), key=itemgetter(0))
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _is_ascending(values: Sequence[float]) -> bool:
    for begin in range(0, len(values), _PART):
        part = _list(values[begin : begin + _PART + 1])  # with the first value of the next part
        if _has_nan(part) or sorted(part) != part:
            return False
    return True


def _has_nan(values: list[float]) -> bool:
    """Return whether some value may be NaN; a sum tells it much faster than a look at each value."""
    total = sum(values)
    return total != total


def _list(values: Sequence[float]) -> list[float]:
    return values.tolist() if isinstance(values, array) else list(values)


def _value(number: float) -> float | None:
    return None if number != number else number
