"""The clock that leases are measured by locally."""

from __future__ import annotations

import time


def boottime() -> float:
    """Seconds on a clock that runs while the computer is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
