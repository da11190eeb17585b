"""Hours in which people are only told what is urgent. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo


def seconds_until_loud(quiet: str | None, time_zone: str, *, now: float) -> float:
    """How long a quiet span such as 22:00-07:00 still lasts at `now`; 0 outside of it. One may go over midnight.

    >>> seconds_until_loud("22:00-07:00", "UTC", now=6 * 3600.0), seconds_until_loud("22:00-07:00", "UTC", now=43200.0)
    (3600.0, 0.0)
    """
    if quiet is None:
        return 0.0
    begins, ends = (time.fromisoformat(part) for part in quiet.split("-"))
    here = datetime.fromtimestamp(now, _zone(time_zone))
    at = here.time()
    is_quiet = begins <= at < ends if begins <= ends else (at >= begins or at < ends)
    if not is_quiet:
        return 0.0
    day = here.date() if at < ends else here.date() + timedelta(days=1)
    return max(0.0, datetime.combine(day, ends, here.tzinfo).timestamp() - now)


def _zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)  # UTC is there even where no table of zones is installed
