"""Limits how much CPU time an expensive reading takes, however expensive it is on this machine."""

from __future__ import annotations

import time
from typing import Callable


class CpuShare:
    """Spends at most a share of one core: after a reading that took 3 ms, a share of 0.001 rests for 3 s.

    `spent` is the thread's CPU time in seconds, `now` a monotonic clock.
    """

    def __init__(
        self, share: float, *, now: Callable[[], float], spent: Callable[[], float] = time.thread_time
    ) -> None:
        self._share = share
        self._now = now
        self._spent = spent
        self._rests_until = 0.0
        self._began = 0.0

    def is_free(self) -> bool:
        """Return whether the next reading may begin."""
        return self._now() >= self._rests_until

    def __enter__(self) -> None:
        self._began = self._spent()

    def __exit__(self, *_: object) -> None:
        """Rest for this reading; what is still left of an earlier rest is added."""
        seconds = max(0.0, self._spent() - self._began)
        self._rests_until = max(self._rests_until, self._now()) + seconds / self._share
