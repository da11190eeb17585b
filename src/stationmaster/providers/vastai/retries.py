"""When a call to Vast.ai is retried, and after which wait: pure rules."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Retries with exponential backoff and jitter, up to a limit.

    Failures and rate limits are counted separately: after a rate limit nothing was done and the wait is known, so it
    may be longer than after a failure.
    """

    attempts: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 15.0  # the caller decides about longer waits
    within_seconds: float = math.inf  # all tries together, without waits for rate limits
    limited_seconds: float = 75.0  # all waits for rate limits together: enough for limits per minute

    def wait(
        self, failures: int, asked_seconds: float | None, *, draw: float, spent_seconds: float = 0.0, turn: float = 0.0
    ) -> float | None:
        """Seconds before the next try; None if there is none. `draw` is random between 0 and 1; `turn` is the minimum
        interval of two calls."""
        if failures >= self.attempts or (asked_seconds or 0.0) > self.longest_seconds:
            return None
        wait = max(asked_seconds or 0.0, self._backoff(failures, draw))
        return wait if spent_seconds + max(wait, turn) < self.within_seconds else None

    def limited_wait(
        self, refusals: int, asked_seconds: float | None, *, draw: float, waited_seconds: float = 0.0, turn: float = 0.0
    ) -> float | None:
        """Seconds to wait after the rate limit was hit for the `refusals`th time; None if that exceeds the limit."""
        wait = max(asked_seconds or 0.0, turn, self._backoff(refusals, draw))
        return wait if waited_seconds + wait <= self.limited_seconds else None

    def _backoff(self, times: int, draw: float) -> float:
        return min(self.first_seconds * 2.0 ** (times - 1), self.longest_seconds) * (0.5 + draw / 2)


HURRIED = Retries(attempts=3, within_seconds=10.0)
"""For calls that a user waits for."""
