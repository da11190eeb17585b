"""Quiet hours end when they say, in the person's own time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.messages.recipients import quiet_seconds_left

HOURS = st.times().map(lambda at: f"{at:%H:%M}")
INSTANTS = st.floats(1.6e9, 1.9e9)


def at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("quiet", "now", "left"),
    [
        ("22:00-07:00", "2026-03-01T21:59", 0.0),
        ("22:00-07:00", "2026-03-01T22:00", 9 * 3600.0),
        ("22:00-07:00", "2026-03-02T06:30", 1800.0),
        ("22:00-07:00", "2026-03-02T07:00", 0.0),
        ("12:00-13:00", "2026-03-02T12:15", 2700.0),
        ("12:00-13:00", "2026-03-02T13:00", 0.0),
    ],
)
def test_what_is_left_of_the_quiet_hours(quiet: str, now: str, left: float) -> None:
    assert quiet_seconds_left(quiet, "UTC", now=at(now)) == left


def test_the_hours_are_those_of_the_person() -> None:
    now = at("2026-07-01T21:30")  # 23:30 in Berlin
    assert quiet_seconds_left("22:00-07:00", "Europe/Berlin", now=now) == 7.5 * 3600
    assert quiet_seconds_left("22:00-07:00", "UTC", now=now) == 0.0


def test_a_night_in_which_the_clocks_change_is_as_long_as_it_is() -> None:
    now = at("2026-03-28T23:00", "Europe/Berlin")
    assert quiet_seconds_left("22:00-07:00", "Europe/Berlin", now=now) == 7 * 3600  # an hour is missing


@given(HOURS, HOURS, INSTANTS)
def test_afterwards_it_is_loud(begins: str, ends: str, now: float) -> None:
    quiet = f"{begins}-{ends}"
    left = quiet_seconds_left(quiet, "UTC", now=now)
    assert 0 <= left <= 86_400
    if left:
        later = datetime.fromtimestamp(now, UTC) + timedelta(seconds=left + 0.01)
        assert quiet_seconds_left(quiet, "UTC", now=later.timestamp()) == 0.0


def test_without_a_span_it_is_never_quiet() -> None:
    assert quiet_seconds_left(None, "UTC", now=0.0) == 0.0
