"""Times are shown as a person at this computer would say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.times import clock_text, date_text, time_text

_BERLIN = ZoneInfo("Europe/Berlin")
_NOW = datetime(2026, 11, 16, 14, 5, 30, tzinfo=_BERLIN).timestamp()


def _at(*parts: int) -> float:
    return datetime(*parts, tzinfo=_BERLIN).timestamp()  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (_NOW, "0 s ago"),
        (_NOW - 59.9, "59 s ago"),
        (_NOW - 60, "1 min ago"),
        (_NOW - 3599, "59 min ago"),
        (_NOW - 3600, "today 13:05"),
        (_at(2026, 11, 16, 0, 0), "today 00:00"),
        (_at(2026, 11, 15, 23, 59), "yesterday 23:59"),
        (_at(2026, 11, 14, 9, 30), "14 Nov 09:30"),
        (_at(2026, 1, 2, 9, 30), "2 Jan 09:30"),
        (_at(2025, 11, 16, 14, 5), "16 Nov 2025 14:05"),
    ],
)
def test_a_time_is_relative_where_it_is_recent(at: float, text: str) -> None:
    assert time_text(at, now=_NOW, zone=_BERLIN) == text


def test_a_clock_that_is_behind_the_store_s_shows_the_time_itself() -> None:
    assert time_text(_NOW + 30, now=_NOW, zone=_BERLIN) == "today 14:06"


def test_the_same_moment_has_another_day_in_another_zone() -> None:
    at, now = _at(2026, 11, 16, 0, 30), _NOW
    assert time_text(at, now=now, zone=_BERLIN) == "today 00:30"
    assert time_text(at, now=now, zone=UTC) == "yesterday 23:30"


def test_a_time_before_the_clocks_changed_is_shown_as_the_clocks_showed_it_then() -> None:
    assert time_text(_at(2026, 7, 1, 12, 0), now=_NOW, zone=_BERLIN) == "1 Jul 12:00"


def test_an_entry_of_a_log_has_its_time_to_the_second() -> None:
    assert clock_text(_NOW - 5, now=_NOW, zone=_BERLIN) == "today 14:05:25"
    assert clock_text(_at(2026, 11, 12, 7, 8, 9), now=_NOW, zone=_BERLIN) == "12 Nov 07:08:09"


def test_a_date_names_its_year() -> None:
    assert date_text(_at(2026, 12, 1), zone=_BERLIN) == "1 Dec 2026"


@given(st.floats(0, 4e9), st.floats(0, 4e9), st.integers(-14 * 60, 14 * 60))
def test_any_time_fits_its_column(at: float, now: float, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    assert 0 < len(time_text(at, now=now, zone=zone)) <= len("12 Nov 2025 14:05")
