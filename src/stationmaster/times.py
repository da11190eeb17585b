"""Times as people read them: in local time, relative where recent. `--json` prints UTC instead.

A `zone` of None is the time zone of this computer.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo

_MINUTE, _HOUR = 60, 3600


def time_text(at: float, *, now: float, zone: tzinfo | None = None) -> str:
    """When something happened: `3 min ago`, `today 14:05`, `yesterday 14:05`, `12 Nov 14:05`, `12 Nov 2025 14:05`."""
    age = now - at
    if 0 <= age < _MINUTE:
        return f"{int(age)} s ago"
    if _MINUTE <= age < _HOUR:
        return f"{int(age // _MINUTE)} min ago"
    return f"{_day(at, now=now, zone=zone)} {datetime.fromtimestamp(at, zone):%H:%M}"


def clock_text(at: float, *, now: float, zone: tzinfo | None = None) -> str:
    """The time of an entry in a log, to the second: `today 14:05:09`, `12 Nov 14:05:09`."""
    return f"{_day(at, now=now, zone=zone)} {datetime.fromtimestamp(at, zone):%H:%M:%S}"


def date_text(at: float, *, zone: tzinfo | None = None) -> str:
    """The date alone: `12 Nov 2025`."""
    moment = datetime.fromtimestamp(at, zone)
    return f"{moment.day} {moment:%b %Y}"


def _day(at: float, *, now: float, zone: tzinfo | None) -> str:
    moment, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    if moment.date() == today.date():
        return "today"
    if moment.date() == today.date() - timedelta(days=1):
        return "yesterday"
    return f"{moment.day} {moment:%b}" if moment.year == today.year else date_text(at, zone=zone)
