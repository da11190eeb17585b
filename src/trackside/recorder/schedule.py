"""When the next sample is due."""

from __future__ import annotations


class Schedule:
    """Due at the start and at every interval after it; a late sample moves none of the following ones."""

    def __init__(self, interval_seconds: float, *, start: float) -> None:
        self._interval = interval_seconds
        self._next = start

    def take_turn(self, moment: float) -> bool:
        """Return whether a sample is due; if one is, the next is due at the first interval that is in the future."""
        if moment < self._next:
            return False
        self._next += self._interval * ((moment - self._next) // self._interval + 1)
        return True

    def seconds_left(self, moment: float) -> float:
        return max(0.0, self._next - moment)
