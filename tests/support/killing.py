"""Signals for processes that may end by themselves at the same moment."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal, unless the process was faster."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
