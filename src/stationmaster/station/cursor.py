"""Cursors: the place in a list where its next page begins, as text that callers pass back unread."""

from __future__ import annotations

import base64
import binascii
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
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise _not_ours() from None
    if len(found) != names or not all(isinstance(name, str) and "\0" not in name for name in found):
        raise _not_ours()
    if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at):
        raise _not_ours()
    return float(at), found


def _not_ours() -> UserError:
    return UserError("this is not the cursor of a page", hint="pass `next` of the page before, unchanged")
