"""Text that others wrote, for a terminal: a name must not move its cursor or look like two lines."""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """
    >>> print(printable("there is no job a\\nb"))
    there is no job a\\nb
    """
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)
