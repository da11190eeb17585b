"""The simulator's clock: it can run faster than real time, be advanced, or stand still."""

from __future__ import annotations

from collections.abc import Callable


class Clock:
    """Simulated seconds since 1970; all bills and deadlines of the simulator use it.

    >>> clock = Clock(source=lambda: 1000.0)
    >>> clock.advance(60)
    >>> clock.now()
    1060.0
    """

    def __init__(self, source: Callable[[], float], *, speed: float = 1.0) -> None:
        self._source = source
        self._speed = speed
        self._anchor_source = source()
        self._anchor_now = self._anchor_source

    @property
    def speed(self) -> float:
        return self._speed

    def now(self) -> float:
        return self._anchor_now + (self._source() - self._anchor_source) * self._speed

    def advance(self, seconds: float) -> None:
        """Advance the clock; it never goes back."""
        if seconds < 0:
            raise ValueError("a clock never goes back")
        self._anchor_now += seconds

    def set_speed(self, speed: float) -> None:
        """From now on one real second counts as `speed` seconds."""
        if speed < 0:
            raise ValueError("a clock never goes back")
        self._anchor_now, self._anchor_source = self.now(), self._source()
        self._speed = speed
