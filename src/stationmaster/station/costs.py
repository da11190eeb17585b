"""What machines cost, line by line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stationmaster.control.billing.breakdown import Shares
from stationmaster.control.billing.over_time import Period
from stationmaster.errors import UserError
from stationmaster.model import REMOVED_MARK, SINGLE_USER, CostLine
from stationmaster.money import MicroDollars
from stationmaster.station.cursor import cursor_behind

__all__ = ["Budget", "Costs", "CostsOverTime", "PaidLine", "Part", "Period", "Shares", "SplitBy", "period_until"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidLine:
    """A cost line, and its split into training, stalled and idle time."""

    line: CostLine
    shares: Shares


class Part(StrEnum):
    """How long each part of time is."""

    HOUR = "hour"
    DAY = "day"


class SplitBy(StrEnum):
    """What the cost of each part is split by."""

    PROVIDER = "provider"
    JOB = "job"


SECONDS_OF = {Part.HOUR: 3600.0, Part.DAY: 86_400.0}
USUAL_PARTS = {Part.HOUR: 48, Part.DAY: 30}
MOST_PARTS = 1000
_LATEST = 32_503_680_000.0  # the year 3000; a later one may be none that a computer can name


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsOverTime:
    """What machines cost in each part of a period; those that still run are counted until now."""

    period: Period
    amounts: tuple[MicroDollars, ...]
    split: tuple[Mapping[str, MicroDollars], ...]  # by name, for each part; empty without a split

    @property
    def total(self) -> MicroDollars:
        return MicroDollars(sum(self.amounts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits on what one user spends, and how much of them is used."""

    user: str
    daily_limit: MicroDollars | None  # None: no limit
    committed: MicroDollars  # in the last 24 hours: what jobs have cost, and what those that run are expected to cost
    hourly_alert: MicroDollars | None  # of all users together: operators get an alert above it; None: never
    max_rentals: int  # machines at the same time, per account


def period_until(end: float, part: Part, *, start: float | None = None) -> Period:
    """Whole parts of time that cover everything from `start` to `end`; without a start, as many as one usually wants.

    Without a start the parts are whole hours or days of UTC. Raises UserError for more than MOST_PARTS.

    >>> period_until(7300.0, Part.HOUR, start=3600.0)
    Period(start=3600.0, seconds=3600.0, count=2)
    """
    seconds = SECONDS_OF[part]
    if start is None:
        start = (end // seconds + 1 - USUAL_PARTS[part]) * seconds
    count = math.ceil((end - start) / seconds)
    if start < 0 or end > _LATEST:
        raise UserError("there are no costs at that time", hint="choose a time between 1970 and 2999")
    if count > MOST_PARTS:
        raise UserError(
            f"from then on there are {count} {part}s; at most {MOST_PARTS} can be shown", hint="choose a later start"
        )
    if count < 1:
        raise UserError("the period ends before it starts", hint="choose an earlier start")
    return Period(start=start, seconds=seconds, count=count)


def of_removed_job(lines: Iterable[PaidLine], reference: str) -> list[PaidLine]:
    """Those of the lines that removed jobs left behind whose id was `reference`, or which have it as their job."""
    return [
        paid
        for paid in lines
        if REMOVED_MARK in paid.line.job_id
        and reference in (paid.line.job_id, paid.line.job_id.rpartition(REMOVED_MARK)[0])
    ]


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

    def budget(self, user: str = SINGLE_USER) -> Budget:
        """The limits on what a user spends. Further jobs wait in the queue once the daily limit is used. Raises
        NotFound for a user who does not exist.
        """

    def over_time(self, period: Period, *, split_by: SplitBy | None = None, owner: str | None = None) -> CostsOverTime:
        """What machines cost in each part of the period, of one user's jobs if given. Removed jobs count too."""
