"""Durations as people write them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.durations import format_duration, parse_duration

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45", 45), ("45s", 45), ("15m", 900), ("4h", 14400), ("2d", 172800), ("1h30m", 5400), ("900000ms", 900),
     ("1.5h", 5400), (" 10 M 5 s ", 605), ("0", 0), (0, 0), (2.5, 2.5)],
)  # fmt: skip
def test_what_people_write_is_read_as_seconds(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["", " ", "-5", "-5m", "5 parsecs", "m", "1h30", "1h,30m", "nan", "inf", "infinity", "1e400", -1, math.nan,
     math.inf, 10**400, "99999999999d", 1e300, True, None, [], {}, "٣m", "1:30"],
)  # fmt: skip
def test_what_is_no_duration_is_refused_in_words(value: object) -> None:
    if value == "٣m":  # digits of other scripts are digits too
        assert parse_duration(value) == 180
        return
    with pytest.raises(ValueError, match="duration"):
        parse_duration(value)


@given(st.lists(st.tuples(st.integers(0, 9_000), st.sampled_from(sorted(_SECONDS))), min_size=1, max_size=4))
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    """Four parts of 9,000 days are just below the longest duration, a hundred years."""
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert parse_duration(text) == pytest.approx(sum(number * _SECONDS[unit] for number, unit in parts))


@given(st.text())
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return
    assert seconds >= 0


@given(st.floats(0, 1e7))
def test_what_is_shown_is_near_to_what_is_meant(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.1, abs=1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.4, "59s"), (59.6, "1m"), (65, "1m5s"), (3599.6, "1h"), (3600, "1h"), (90_000, "25h"), (-3, "0s"),
     (None, "N/A"), (math.inf, "N/A"), (math.nan, "N/A")],
)  # fmt: skip
def test_durations_are_shown_short(seconds: float | None, text: str) -> None:
    assert format_duration(seconds) == text
