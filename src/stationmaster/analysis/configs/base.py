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
    def framework(self) -> str: ...

    def setting(self, lever: Lever) -> Setting | None:
        """Return where a lever is set; None where this trainer has no such setting or it has no effect here."""
        ...

    @property
    def thresholds(self) -> Mapping[str, float]:
        """`memory_warning_threshold`, `memory_critical_threshold`, where the config sets them."""
        ...
