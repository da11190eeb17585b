"""When a call to Vast.ai is tried again, and how long it waits before that: pure rules."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How a call that may be repeated is repeated: waits that double, with jitter, up to a bound.

    A failure and a rate limit are counted apart: a rate limit says that nothing was done and when to come back, so
    waiting for it is worth more patience than a silence.
    """

    attempts: int = 4
    first_seconds: float = 0.5
    longest_seconds: float = 15.0  # a longer wait is for the caller to decide
    within_seconds: float = math.inf  # all tries together, from the first one's turn on; rate limits not counted
    limited_seconds: float = 75.0  # all waits for rate limits together: those that count by the minute end within it

    def wait(
        self, failures: int, asked_seconds: float | None, *, draw: float, spent_seconds: float = 0.0, turn: float = 0.0
    ) -> float | None:
        """Seconds before the next try; None when there is none. `draw` is random, between 0 and 1, and `turn` the
        seconds that two calls keep apart anyway."""
        if failures >= self.attempts or (asked_seconds or 0.0) > self.longest_seconds:
            return None
        wait = max(asked_seconds or 0.0, self._backoff(failures, draw))
        return wait if spent_seconds + max(wait, turn) < self.within_seconds else None

    def limited_wait(
        self, refusals: int, asked_seconds: float | None, *, draw: float, waited_seconds: float = 0.0, turn: float = 0.0
    ) -> float | None:
        """Seconds to wait after the service has said for the `refusals`th time that it is asked too often; None when
        the patience does not last that long."""
        wait = max(asked_seconds or 0.0, turn, self._backoff(refusals, draw))
        return wait if waited_seconds + wait <= self.limited_seconds else None

    def _backoff(self, times: int, draw: float) -> float:
        return min(self.first_seconds * 2.0 ** (times - 1), self.longest_seconds) * (0.5 + draw / 2)


HURRIED = Retries(attempts=3, within_seconds=10.0)
"""For a question that a person waits for."""
