"""Token buckets in memory: how often something may happen, per key."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST_KEYS = 10_000


class Buckets:
    """Each key may act `per_minute` times at once, and again as time passes."""

    def __init__(self, per_minute: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}  # key to (what was left, when)

    def wait_seconds(self, key: str) -> float:
        """How long until the key may act; 0 if it may now."""
        return max(0.0, (1.0 - self._left(key)) * 60.0 / self._per_minute)

    def take(self, key: str) -> float:
        """Count one act, unless there is a wait: then its seconds."""
        wait = self.wait_seconds(key)
        if wait <= 0.0:
            left = self._left(key)
            if key not in self._levels and len(self._levels) >= _MOST_KEYS:
                self._forget()
            self._levels[key] = (left - 1.0, self._clock())
        return wait

    def _left(self, key: str) -> float:
        now = self._clock()
        left, since = self._levels.get(key, (self._per_minute, now))
        return min(self._per_minute, left + (now - since) * self._per_minute / 60.0)

    def _forget(self) -> None:
        """Drop what is full again anyway; if that is nothing, the older half: memory stays bounded."""
        self._levels = {key: level for key, level in self._levels.items() if self._left(key) < self._per_minute}
        if len(self._levels) >= _MOST_KEYS:
            newest = sorted(self._levels.items(), key=lambda each: each[1][1])[_MOST_KEYS // 2 :]
            self._levels = dict(newest)
