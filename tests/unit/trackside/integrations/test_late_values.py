"""Rows with values that are still being computed are written in order, and nothing waits for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trackside.integrations.late_values import LateRows, Numbers, Reading, start_reading


class Slow(Reading):
    """A value that arrives when the test decides."""

    def __init__(self, number: float) -> None:
        super().__init__(number)
        self.arrived = False

    def is_ready(self) -> bool:
        return self.arrived


def rows_of(values: list[Any]) -> tuple[LateRows, list[Numbers]]:
    """Add a row for each value; return the rows and what is written of them."""
    written: list[Numbers] = []
    rows = LateRows(lambda value: value if isinstance(value, Reading) else start_reading(value))
    for value in values:
        rows.add({"loss": value}, written.append)
    return rows, written


def test_known_values_are_written_at_once() -> None:
    _, written = rows_of([0.5, 0.25])
    assert written == [{"loss": 0.5}, {"loss": 0.25}]


def test_a_row_waits_for_its_values_and_for_the_rows_before_it() -> None:
    first, second = Slow(0.5), Slow(0.25)
    rows, written = rows_of([first, second, 0.125])
    second.arrived = True
    rows.write_ready()
    assert written == []
    first.arrived = True
    rows.write_ready()
    assert written == [{"loss": 0.5}, {"loss": 0.25}, {"loss": 0.125}]


def test_at_the_end_every_row_is_written() -> None:
    rows, written = rows_of([Slow(0.5), 0.25])
    rows.write_all()
    assert written == [{"loss": 0.5}, {"loss": 0.25}]


def test_a_device_that_never_answers_costs_values_and_not_memory() -> None:
    _, written = rows_of([Slow(0.5) for _ in range(300)])
    assert written == [{}] * (300 - 256)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.float32(0.5), 0.5),
        (np.array([0.25]), 0.25),
        (np.array([1.0, 2.0]), None),
        (np.array("text"), None),
        ("0.5", None),
        (None, None),
        (object(), None),
    ],
)
def test_what_is_not_one_number_is_left_out(value: Any, number: float | None) -> None:
    assert start_reading(value).number() == number
