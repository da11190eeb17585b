"""What an analysis asks of a trainer's config, whichever trainer it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stationmaster.analysis.levers import Lever


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a lever is set, and what it is set to."""

    path: str
    value: Any
    """The config's value; if the key is absent, the trainer's default, or None."""
    is_given: bool
    """Whether the config has the key."""


class TrainerConfig(Protocol):
    """A config: where each lever is, and facts that several rules need."""

    @property
    def framework(self) -> str:
        """`ai-toolkit`, `kohya`, or `recipe` for the parameters of a recipe without a trainer's config."""
        ...

    def setting(self, lever: Lever) -> Setting | None:
        """Return where a lever is set; None where this trainer has no such setting or it has no effect here."""
        ...

    @property
    def trains_adapter(self) -> bool | None:
        """Whether an adapter is trained, not the whole model; None if the config does not show it."""
        ...

    @property
    def thresholds(self) -> Mapping[str, float]:
        """`memory_warning_threshold` and `memory_critical_threshold`, where the config sets them."""
        ...


def number(value: Any) -> float | None:
    """Return a value of a config as a number: YAML reads `1e-4` as a text. None if it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if abs(found) < float("inf") else None


def truth(value: Any) -> bool:
    """Return a value of a config as true or false."""
    if isinstance(value, str):
        return value.strip().casefold() in ("true", "yes", "on", "1")
    return bool(value)
