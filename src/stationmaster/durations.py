"""Parses and formats durations: 90, "45s", "15m", "4h", "2d", "1h30m"; values are seconds."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator

LONGEST_SECONDS = 100 * 366 * 86400.0
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|d)\s*)+")


def parse_duration(value: object) -> float:
    """Seconds in `value`: a number of seconds, or text with units. Raises ValueError.

    >>> parse_duration("1h30m"), parse_duration("15m"), parse_duration(45)
    (5400.0, 900.0, 45.0)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a duration is a number of seconds or a text such as 45s, 15m, 4h")
    text = value.strip().lower() if isinstance(value, str) else value
    try:
        seconds = float(text)
    except OverflowError:
        seconds = math.inf
    except ValueError:
        if not _WHOLE.fullmatch(str(text)):
            raise ValueError(f"{value!r} is not a duration; write 45s, 15m, 4h or 1h30m") from None
        seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(str(text)))
    if not 0 <= seconds < math.inf:
        raise ValueError("a duration must be finite and not negative")
    if seconds > LONGEST_SECONDS:
        raise ValueError("a duration is at most a hundred years")
    return seconds


def format_duration(seconds: float | None) -> str:
    """The two largest units, for display; `N/A` if unknown.

    >>> format_duration(45), format_duration(2700), format_duration(7500), format_duration(43200), format_duration(None)
    ('45s', '45m', '2h5m', '12h', 'N/A')
    """
    if seconds is None or not math.isfinite(seconds):
        return "N/A"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{rest}s" if rest and minutes < 10 else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m" if minutes else f"{hours}h"


Duration = Annotated[float, BeforeValidator(parse_duration)]
"""A pydantic field in seconds that also reads `15m` or `4h`."""
