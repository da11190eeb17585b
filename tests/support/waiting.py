"""Waiting for something to come true, by looking: seldom where a look is expensive or the wait long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 150.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.05, 0.5
_PAUSE_PER_LOOK = 9.0  # at most a tenth of a core goes into looking
_PAUSE_PER_WAIT = 0.1  # what takes long is seen a tenth later


def until(
    condition: Callable[[], T | None],
    what: str = "what was waited for",
    *,
    seconds: float = PATIENCE_SECONDS,
    story: Callable[[], str] | None = None,
) -> T:
    """Wait for the condition; returns its first true value. After the timeout it fails with `what` and the `story`."""
    pauses = Pauses()
    while True:
        looked_after = pauses.begin_look()
        if found := condition():
            return found
        assert looked_after < seconds, f"after {seconds:g} s still not: {what}" + (f"\n{story()}" if story else "")
        time.sleep(pauses.next_seconds())


class Pauses:
    """The pauses between the looks of one wait."""

    def __init__(self) -> None:
        self._began = self._looked = time.monotonic()

    def begin_look(self) -> float:
        """Call it before each look; returns how long the wait has lasted."""
        self._looked = time.monotonic()
        return self._looked - self._began

    def next_seconds(self) -> float:
        """How long to pause after a look that was in vain."""
        now = time.monotonic()
        return pause_seconds(now - self._looked, waited_seconds=now - self._began)


def pause_seconds(look_seconds: float, *, waited_seconds: float = 0.0) -> float:
    """How long to wait before looking again, if a look takes this long and one has waited so long.

    >>> [pause_seconds(look) for look in (0.0, 0.03, 1.0)]
    [0.05, 0.27, 0.5]
    >>> [pause_seconds(0.0, waited_seconds=waited) for waited in (0.1, 1.0, 10.0)]
    [0.05, 0.1, 0.5]
    """
    wanted = max(_SHORTEST_SECONDS, _PAUSE_PER_LOOK * look_seconds, _PAUSE_PER_WAIT * waited_seconds)
    return min(_LONGEST_SECONDS, wanted)
