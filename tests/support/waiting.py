"""Waiting for something to come true, by looking: often where a look is cheap, seldom where it is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 150.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 0.25
_PAUSE_PER_LOOK = 4.0  # at most a fifth of a core goes into looking


def until(
    condition: Callable[[], T | None],
    what: str = "what was waited for",
    *,
    seconds: float = PATIENCE_SECONDS,
    story: Callable[[], str] | None = None,
) -> T:
    """Wait for the condition; returns its first true value. After the timeout it fails with `what` and the `story`."""
    ends = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if found := condition():
            return found
        assert began < ends, f"after {seconds:g} s still not: {what}" + (f"\n{story()}" if story else "")
        time.sleep(pause_seconds(time.monotonic() - began))


def pause_seconds(look_seconds: float) -> float:
    """How long to wait before looking again, if a look takes this long.

    >>> [pause_seconds(look) for look in (0.0, 0.03, 1.0)]
    [0.02, 0.12, 0.25]
    """
    return min(_LONGEST_SECONDS, max(_SHORTEST_SECONDS, _PAUSE_PER_LOOK * look_seconds))
