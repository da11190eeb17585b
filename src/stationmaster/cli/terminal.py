"""Whether a person sits in front of a terminal that the app can draw on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

PIPE_WIDTH = 140
"""How wide a table is that no terminal shows."""


def can_draw(environ: Mapping[str, str]) -> bool:
    """Keys come from standard input and the app draws on the terminal, so both must be one."""
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "dumb") != "dumb"


def keys_from_terminal(environ: Mapping[str, str]) -> str | None:
    """Make the terminal standard input, which has data; returns the path under which the data is read from now on.

    None, and nothing is changed, where there is no terminal.
    """
    if sys.stdin.isatty() or not sys.stdout.isatty() or environ.get("TERM", "dumb") == "dumb":
        return None
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return None
    data = os.dup(0)
    os.dup2(terminal, 0)
    os.close(terminal)
    return f"/dev/fd/{data}"
