"""What is wrong with a recipe, where, and how to fix it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.errors import RecipeInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to change in one recipe file."""

    file: str
    line: int | None
    field: str
    message: str
    fix: str | None = None
    is_warning: bool = False  # the recipe can be used all the same

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{place}: {self.field}: {self.message}" if self.field else f"{place}: {self.message}"
        return f"warning: {text}" if self.is_warning else text


def invalid(problems: Sequence[Problem]) -> RecipeInvalid:
    """The error of the first problem; the hint is its fix, and the command that lists the others."""
    first, others = problems[0], len(problems) - 1
    hints = [first.fix] if first.fix else []
    if others:
        hints.append(f"run `stationmaster recipes lint {shlex.quote(first.file)}` for {others} more")
    return RecipeInvalid(str(first), hint="; ".join(hints) or None)
