"""Curves in braille."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.tui.braille import Curve, chart_lines, dots
from stationmaster.tui.lines import text_of


def drawn(curve: Curve, *, width: int = 60, height: int = 8) -> list[str]:
    return [text_of(each) for each in chart_lines(curve, width=width, height=height)]


def test_a_spike_of_one_step_in_a_hundred_thousand_is_seen() -> None:
    values = [1.0] * 100_000
    values[50_000] = 9.0
    rows = dots(list(enumerate(values)), low=1.0, high=9.0, columns=40, rows=4)
    assert rows[0].strip()
    assert len(rows[0].strip()) == 1


def test_a_falling_curve_begins_high_and_ends_low() -> None:
    rows = dots([(0.0, 1.0), (1.0, 0.0)], low=0.0, high=1.0, columns=10, rows=2)
    assert rows[0][0] != " "
    assert rows[1][-1] != " "
    assert rows[0][-1] == " "
    assert "".join(rows).count(" ") < 20, "the line between the points is drawn"


def test_nothing_and_values_that_are_no_numbers_are_said() -> None:
    assert drawn(Curve(title="loss")) == ["loss", "nothing measured yet"]
    assert drawn(Curve(title="loss", x=(1.0,), y=(math.nan,))) == ["loss", "1 values are not numbers"]
    assert "1 not a number" in drawn(Curve(title="loss", x=(1.0, 2.0), y=(math.nan, 2.0)))[0]


def test_the_range_and_the_ends_are_written_beside_the_curve() -> None:
    lines = drawn(Curve(title="memory", x=(0.0, 9.0), y=(4.0, 8.0), unit=" GB", bottom=0.0, top=24.0, ends=("0", "9m")))
    assert lines[0].startswith("memory 8 GB")
    assert lines[1].lstrip().startswith("24 ")
    assert lines[-2].lstrip().startswith("0")
    assert lines[-1].split() == ["0", "9m"]


def test_values_and_times_may_be_further_apart_than_a_number_can_say() -> None:
    far = 1.5e308
    usual = dots([(-1.0, -1.0), (1.0, 1.0)], low=-1.0, high=1.0, columns=9, rows=3)
    assert dots([(-far, -far), (far, far)], low=-far, high=far, columns=9, rows=3) == usual
    flat = drawn(Curve(title="loss", x=(0.0, 1.0), y=(far, far)))
    assert flat[1].split()[0] == "1.5e+302M"
    assert flat[-2].split() == ["0"]


@given(
    st.lists(st.tuples(st.floats(), st.floats()), max_size=50),
    st.integers(min_value=1, max_value=200),
    st.integers(min_value=1, max_value=40),
)
def test_any_values_fit_into_any_place(points: list[tuple[float, float]], width: int, height: int) -> None:
    points.sort(key=lambda point: (math.isnan(point[0]), point[0]))
    curve = Curve(title="loss", x=tuple(x for x, _ in points), y=tuple(y for _, y in points))
    assert len(chart_lines(curve, width=width, height=height)) <= height
