"""Patterns that a recipe, or the settings, add to what the log reader knows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from stationmaster.recipes.fields import Part

if TYPE_CHECKING:
    from stationmaster.parsers.patterns import UserPattern


class LogPattern(Part):
    """A regular expression that is looked for in every line of the training's output, before all others."""

    phase: Literal["loading", "caching", "training", "sampling", "evaluating", "saving", "finished"] | None = None
    """Phase that a matching line shows; by default training if it has a step, saving if it has a checkpoint."""
    fatal: bool = True
    """Whether an error found by this pattern is fatal for the training."""
    pattern: str = Field(min_length=1, max_length=1_000)
    """Regular expression. Its named groups are the values to read: step, total_steps, epoch, total_epochs, loss,
    learning_rate, steps_per_second, seconds_per_step, eta, checkpoint, error."""

    @field_validator("pattern")
    @classmethod
    def _works(cls, pattern: str, info: ValidationInfo) -> str:
        from stationmaster.errors import ConfigInvalid
        from stationmaster.parsers.patterns import checked_pattern  # all parsers come with it: only where it is needed

        if "phase" not in info.data:
            return pattern  # the problem with the phase is reported already
        try:
            checked_pattern(pattern, phase=info.data["phase"])
        except ConfigInvalid as problem:
            facts = {"problem": str(problem), "fix": problem.hint}
            raise PydanticCustomError("log_pattern", "{problem}", facts) from None
        return pattern


def user_patterns(declared: Iterable[LogPattern]) -> tuple[UserPattern, ...]:
    """What a log reader takes."""
    from stationmaster.parsers.base import Phase
    from stationmaster.parsers.patterns import UserPattern

    return tuple(
        UserPattern(pattern=one.pattern, phase=None if one.phase is None else Phase(one.phase), fatal=one.fatal)
        for one in declared
    )
