"""Times at the beginning of log lines, in the shapes that trainers and `ts` print them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_LINES = re.compile(r"[^\r\n]*(?:[\r\n]+|$)")
_STAMP = re.compile(
    r"\s*[\[(]?(?:"
    r"(?P<year>\d{4})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ](?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?"
    r"|(?P<us_month>\d\d)/(?P<us_day>\d\d)(?:/(?P<us_year>\d{4}))? (?P<us_clock>\d\d:\d\d:\d\d)"
    r"|(?P<name>[A-Z][a-z]{2}) +(?P<name_day>\d{1,2}) (?P<name_clock>\d\d:\d\d:\d\d)"
    r"|(?P<seconds>1\d{9}(?:\.\d{1,9})?)(?=[\s:\]])"
    r"|(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?=[\s\])-])"
    r")"
)
# English, not this computer's locale: the log was written elsewhere.
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAY = 86400.0
_LEAP_YEAR = 2024  # for stamps without a year: has every day


def timed_pieces(text: str) -> list[tuple[float, str]]:
    """The log as (seconds since its first stamp, piece); a piece without a stamp takes the one before it.

    Empty if no line carries a time. A clock without a date that jumps back by half a day has passed midnight.
    """
    pieces: list[tuple[float, str]] = []
    first: float | None = None
    now = 0.0
    for piece in _LINES.findall(text):
        if not piece:
            continue
        stamp = read_stamp(piece)
        if stamp is not None:
            first = stamp if first is None else first
            now = _after(now, stamp - first)
        pieces.append((now, _without_recorder(piece)))
    return pieces if first is not None else []


def read_stamp(line: str) -> float | None:
    """The line's stamp in seconds; only stamps of the same kind can be compared.

    >>> read_stamp("[2026-05-14 00:00:10,500] INFO: step 3") - read_stamp("2026-05-14T00:00:00Z start")
    10.5
    """
    found = _STAMP.match(line)
    if found is None:
        return None
    try:
        if found["year"]:
            return _seconds(int(found["year"]), int(found["month"]), int(found["day"]), found["clock"], found["zone"])
        if found["us_month"]:
            year = int(found["us_year"] or _LEAP_YEAR)
            return _seconds(year, int(found["us_month"]), int(found["us_day"]), found["us_clock"])
        if found["name"]:
            return _seconds(_LEAP_YEAR, _MONTHS[found["name"]], int(found["name_day"]), found["name_clock"])
        return float(found["seconds"]) if found["seconds"] else _of_day(found["time"])
    except (KeyError, ValueError):  # 99:99:99, Foo 12: not a time after all
        return None


def _without_recorder(piece: str) -> str:
    """The line as the trainer printed it: a stamp that a recorder such as `ts` put before it is removed."""
    found = _STAMP.match(piece)
    if found and (found["seconds"] or found["name"]):
        return piece[found.end() :].removeprefix("]").removeprefix(" ")
    return piece


def _seconds(year: int, month: int, day: int, clock: str, zone: str | None = None) -> float:
    offset = 0.0
    if zone and zone != "Z":
        offset = (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60) * (1 if zone[0] == "+" else -1)
    return datetime(year, month, day, tzinfo=UTC).timestamp() + _of_day(clock) - offset


def _of_day(clock: str) -> float:
    hours, minutes, seconds = clock.replace(",", ".").split(":")
    if int(hours) > 23 or int(minutes) > 59 or float(seconds) >= 61:
        raise ValueError(f"{clock} is not a time of day")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _after(now: float, stamp: float) -> float:
    """The stamp on the scale of the run: over midnight, and never back."""
    while now - stamp > _DAY / 2:
        stamp += _DAY
    return max(now, stamp)
