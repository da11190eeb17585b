"""Cursors: the place in a list where its next page begins, as text that callers pass back unread."""

from __future__ import annotations

import base64
import json
import math

from stationmaster.errors import UserError


def cursor_behind(at: float, *names: str) -> str:
    """The cursor behind the entry that this time and these names identify."""
    return base64.urlsafe_b64encode(json.dumps([at, *names]).encode()).decode().rstrip("=")


def place_of(cursor: str, *, names: int) -> tuple[float, list[str]]:
    """The time and the names that a cursor was made of. Raises UserError for other text.

    >>> place_of(cursor_behind(12.5, "abc"), names=1)
    (12.5, ['abc'])
    """
    try:
        at, *found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if len(found) == names and _is_time(at) and all(_is_name(name) for name in found):
            return float(at), found
    except (ValueError, TypeError, RecursionError, OverflowError):
        pass  # not made by us
    raise UserError("this is not the cursor of a page", hint="pass `next` of the page before, unchanged")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_name(value: object) -> bool:
    """Whether a database takes it; a lone surrogate cannot be encoded."""
    return isinstance(value, str) and b"\0" not in value.encode()
