"""Times in requests."""

from __future__ import annotations

from datetime import UTC, datetime


def seconds_of(time: datetime) -> float:
    """Seconds since 1970; a time without a zone is UTC.

    >>> seconds_of(datetime(1970, 1, 2))
    86400.0
    """
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
