"""What machines cost, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.billing.breakdown import Shares
from stationmaster.model import CostLine

__all__ = ["Costs", "PaidLine", "Shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidLine:
    """A cost line, and its split into training, stalled and idle time."""

    line: CostLine
    shares: Shares


class Costs(Protocol):
    def lines(self, job_id: str | None = None) -> Sequence[PaidLine]:
        """The lines of a job, or all lines; oldest first."""
