"""Waiting of commands that stay until Ctrl-C."""

from __future__ import annotations

import time

_LONGEST_SLEEP_SECONDS = 0.5


def pause(seconds: float) -> None:
    """Wait, in short sleeps: Python hears a Ctrl-C that comes in the moment before a sleep only after that sleep."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(left, _LONGEST_SLEEP_SECONDS))
