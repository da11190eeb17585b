"""How trainings' output is read."""

from __future__ import annotations

from pydantic import Field

from stationmaster.recipes.log_patterns import LogPattern
from stationmaster.settings.section import Section


class LogSettings(Section):
    patterns: tuple[LogPattern, ...] = Field(default=(), max_length=50)
    """Regular expressions for output that the log reader does not know, after those of the recipe."""
