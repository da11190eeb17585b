"""What machines cost, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.billing.breakdown import Shares
from stationmaster.model import CostLine
from stationmaster.station.cursor import cursor_behind

__all__ = ["Costs", "PaidLine", "Shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidLine:
    """A cost line, and its split into training, stalled and idle time."""

    line: CostLine
    shares: Shares


def cost_cursor(paid: PaidLine) -> str:
    """Where the page behind this line begins."""
    return cursor_behind(paid.line.started_at, paid.line.rental_label, paid.line.kind)


class Costs(Protocol):
    def lines(
        self,
        job_id: str | None = None,
        *,
        owner: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[PaidLine]:
        """The lines of a job, or of one user's jobs, or all; oldest first. A removed job's lines stay.

        `after` and `limit` are for pages of a list that is not of one job. Raises UserError for an unknown cursor.
        """
