"""Alternatives of a pattern, one idea per line."""

from __future__ import annotations

import re


def any_of(*patterns: str) -> re.Pattern[str]:
    """A pattern that is found where one of these is, in capitals or not."""
    return re.compile("|".join(patterns), re.IGNORECASE)
