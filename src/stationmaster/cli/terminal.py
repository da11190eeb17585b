"""Whether a person sits in front of a terminal that the app can draw on."""

from __future__ import annotations

import sys
from collections.abc import Mapping


def can_draw(environ: Mapping[str, str]) -> bool:
    """Keys come from standard input and the app draws on the terminal, so both must be one."""
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "dumb") != "dumb"
