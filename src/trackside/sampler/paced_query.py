"""Asks a program for readings, no more often than its CPU time and its failures allow."""

from __future__ import annotations

from typing import Callable

from trackside.machine.query import Query

_SHARE_OF_A_CORE = 0.01
_FAILURES_BEFORE_A_PAUSE = 3
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3600.0


class PacedQuery:
    """Rests after each answer in proportion to its cost, and longer each time after failures in a row."""

    def __init__(self, query: Query, *, now: Callable[[], float]) -> None:
        self._query = query
        self._now = now
        self._rests_until = 0.0
        self._failures = 0

    @property
    def hung(self) -> bool:
        """Whether the last program had to be killed."""
        return self._query.hung

    def is_free(self) -> bool:
        """Return whether the program may be asked now."""
        return self._now() >= self._rests_until

    def ask(self, *arguments: str) -> str | None:
        """Return what the program prints; None if it fails or hangs."""
        self._query.cpu_seconds = 0.0
        answer = self._query.ask(*arguments)
        self._failures = 0 if answer is not None else self._failures + 1
        self._rests_until = max(self._rests_until, self._now()) + self._query.cpu_seconds / _SHARE_OF_A_CORE
        beyond = self._failures - _FAILURES_BEFORE_A_PAUSE
        if beyond >= 0:
            pause = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(beyond, 10))
            self._rests_until = max(self._rests_until, self._now() + pause)
        return answer
