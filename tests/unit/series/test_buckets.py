"""A series reduced to a chart's width."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.series.buckets import reduce_to_columns

values = st.floats(-1e9, 1e9) | st.just(math.nan)
series = st.lists(st.tuples(st.integers(0, 500), values), max_size=200)


def test_a_spike_of_one_step_is_drawn() -> None:
    x = list(range(100_000))
    y = [0.5] * 100_000
    y[77_777] = 9.0
    drawn = reduce_to_columns(x, y, columns=1000)
    assert (77_777, 9.0) in zip(drawn.x, drawn.y, strict=True)
    assert len(drawn.x) <= 2000
    assert not drawn.exact


def test_few_points_are_returned_as_they_are() -> None:
    drawn = reduce_to_columns([1, 2, 3], [0.1, math.nan, 0.3], columns=1000)
    assert drawn.x == [1, 2, 3]
    assert drawn.y == [0.1, None, 0.3]
    assert drawn.exact


def test_zooming_in_ends_at_the_exact_values() -> None:
    x = list(range(10_000))
    y = [float(value % 7) for value in x]
    drawn = reduce_to_columns(x, y, columns=50, start=500, end=599)
    assert drawn.exact
    assert drawn.x == x[500:600]
    assert drawn.y == y[500:600]


def test_a_part_without_values_is_a_gap() -> None:
    y = [1.0] * 100 + [math.nan] * 100 + [2.0] * 100
    drawn = reduce_to_columns(range(300), y, columns=3)
    assert drawn.y == [1.0, None, 2.0]


def test_points_that_arrive_out_of_order_are_sorted() -> None:
    drawn = reduce_to_columns([3, 1, 2], [30.0, 10.0, 20.0], columns=10)
    assert drawn.x == [1, 2, 3]
    assert drawn.y == [10.0, 20.0, 30.0]


def test_all_points_at_one_place_give_their_extremes() -> None:
    drawn = reduce_to_columns([5] * 100, [float(value) for value in range(100)], columns=10)
    assert drawn.x == [5, 5]
    assert drawn.y == [0.0, 99.0]


@pytest.mark.parametrize("range_", [(None, None), (10, 400), (600, 700), (400, 10)])
@given(series, st.integers(1, 30))
def test_extremes_are_kept_and_nothing_is_invented(
    range_: tuple[float | None, float | None], points: list[tuple[int, float]], columns: int
) -> None:
    start, end = range_
    inside = [
        (x, y)
        for x, y in points
        if (start is None or x >= start) and (end is None or x <= end) and not math.isnan(y)
    ]  # fmt: skip
    drawn = reduce_to_columns([x for x, _ in points], [y for _, y in points], columns=columns, start=start, end=end)
    assert len(drawn.x) <= 2 * columns
    assert drawn.x == sorted(drawn.x)
    shown = [(x, y) for x, y in zip(drawn.x, drawn.y, strict=True) if y is not None]
    assert set(shown) <= set(inside)
    if inside:
        assert min(y for _, y in shown) == min(y for _, y in inside)
        assert max(y for _, y in shown) == max(y for _, y in inside)
