"""Numbers, times and speeds as trainers print them."""

from __future__ import annotations

import math
import re

_CLOCK = re.compile(r"(?:(\d+)\s*days?,?\s*)?(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$")
_SPELLED = re.compile(
    r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|ms)(?![a-z])(?:[\s,]*+(?:and\s++)?)"
)
_PLAIN = re.compile(r"\d+(?:\.\d+)?$")
_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*/\s*([a-z]+)")
_PER_SECOND = frozenset({"s", "sec", "secs", "second"})
_STEP_UNITS = frozenset(
    {"it", "iter", "iters", "iteration", "iterations", "step", "steps", "batch", "batches", "update"}
)
_UNIT_SECONDS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}


def duration_seconds(text: str) -> float | None:
    """Seconds in `9:04`, `2 days, 7:32:05`, `20m 1s`, `12s` or `0`; None for anything else.

    >>> duration_seconds("2 days, 7:32:05"), duration_seconds("47:09:50"), duration_seconds("20m 1s")
    (199925.0, 169790.0, 1201.0)
    """
    text = text.strip().lower()
    if found := _CLOCK.match(text):
        days, first, second, third = found.groups()
        clock = (int(first) * 60 + int(second)) * 60 + float(third) if third else int(first) * 60 + int(second)
        return float(int(days or 0) * 86_400 + clock)
    if _PLAIN.match(text):
        return float(text)
    return _spelled_seconds(text)


def steps_per_second(text: str) -> float | None:
    """Steps per second in `1.75it/s`, `3.4s/it`, `158ms/step`; None where samples, tokens or bytes are counted.

    >>> steps_per_second("4.00s/it"), steps_per_second(" 6.03 batch/s"), steps_per_second("39.3MB/s")
    (0.25, 6.03, None)
    """
    found = _RATE.match(text.strip().lower())
    if not found:
        return None
    value, unit, per = float(found[1]), found[2], found[3]
    if per in _PER_SECOND and unit in _STEP_UNITS:
        return value
    if per in _STEP_UNITS and unit in _UNIT_SECONDS:
        return per_second(value * _UNIT_SECONDS[unit])
    return None


def per_second(seconds_per_step: float) -> float | None:
    return 1.0 / seconds_per_step if seconds_per_step > 0 and math.isfinite(seconds_per_step) else None


def whole(text: str) -> int | None:
    """An integer that may carry thousands separators; None for anything else or anything absurd."""
    digits = text.replace(",", "")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def _spelled_seconds(text: str) -> float | None:
    total, position = 0.0, 0
    for found in _SPELLED.finditer(text):
        if found.start() != position:
            return None
        unit = "ms" if found[2] == "ms" else found[2][0]
        total += float(found[1]) * (1e-3 if unit == "ms" else _SECONDS[unit])
        position = found.end()
    return total if position and position == len(text) else None
