"""How busy the cores are that the training may use."""

from __future__ import annotations

import os
from typing import Callable

from trackside.sampler.cgroups import CpuQuota
from trackside.sampler.procfs import read_bytes

_IDLE, _WAITING_FOR_DISK, _GUEST = 3, 4, 8


def usable_cores(pid: int | None, quota: CpuQuota | None) -> float:
    """Return how many cores the process may use; fewer than the machine's under a quota."""
    cores = float(len(allowed_cores(pid)) or os.cpu_count() or 1)
    return cores if quota is None else min(cores, quota.cores)


def allowed_cores(pid: int | None) -> set[int]:
    """Return the numbers of the cores that the process may run on; empty where the system does not limit them."""
    try:
        return os.sched_getaffinity(pid or 0)
    except (AttributeError, OSError):
        return set()


class CpuMeter:
    """Measures between two readings: the group's use of its quota, or else of the allowed cores."""

    def __init__(
        self, *, now: Callable[[], float], quota: CpuQuota | None, allowed: set[int], proc: str = "/proc"
    ) -> None:
        self._now = now
        self._quota = quota
        self._allowed = allowed
        self._proc = proc
        self._last: tuple[float, float] | None = None

    def read(self) -> float | None:
        """Return the percentage since the last reading; None at the first. Raises OSError or ValueError."""
        seen = self._read_quota(self._quota) if self._quota else self._read_cores()
        last, self._last = self._last, seen
        if last is None or seen is None or seen[1] <= last[1]:
            return None
        return min(100.0, max(0.0, 100.0 * (seen[0] - last[0]) / (seen[1] - last[1])))

    def _read_quota(self, quota: CpuQuota) -> tuple[float, float] | None:
        used = quota.used_seconds()
        return None if used is None else (used, self._now() * quota.cores)

    def _read_cores(self) -> tuple[float, float]:
        return parse_busy_and_total(read_bytes(self._proc + "/stat"), self._allowed)


def parse_busy_and_total(stat: bytes, allowed: set[int]) -> tuple[float, float]:
    """Return the ticks that the allowed cores were busy, and all their ticks.

    >>> text = b"cpu  5 0 1 90 4 0 0 0 0 0\\ncpu0 5 0 1 40 4 0 0 0 0 0\\ncpu1 0 0 0 50 0 0 0 0 0 0\\nintr 1"
    >>> parse_busy_and_total(text, {0, 1}), parse_busy_and_total(text, {0})
    ((6.0, 100.0), (6.0, 50.0))
    """
    lines = [line.split() for line in stat[: stat.find(b"\nintr")].splitlines() if line.startswith(b"cpu")]
    chosen = [fields for fields in lines[1:] if int(fields[0][3:]) in allowed]
    if not chosen or len(chosen) == len(lines) - 1:
        chosen = lines[:1]
    busy = total = 0.0
    for fields in chosen:
        ticks = [int(field) for field in fields[1 : 1 + _GUEST]]  # guests are part of the first figures
        total += sum(ticks)
        busy += sum(ticks) - ticks[_IDLE] - ticks[_WAITING_FOR_DISK]
    return busy, total
