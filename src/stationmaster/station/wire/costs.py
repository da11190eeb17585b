"""What machines cost, line by line."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import CostLine
from stationmaster.money import MicroDollars
from stationmaster.station.costs import Budget, CostsOverTime, PaidLine, Period, Shares
from stationmaster.station.wire.document import Document, Instant, Usd


class PaidLineDocument(Document):
    """What one machine cost, and its split into training, stalled and idle time."""

    job: str
    """Id of the job."""
    rental: str
    """The label of the machine."""
    kind: str = Field(examples=["gpu"])
    """What is paid for, such as `gpu`."""
    rate_per_hour_micros: int
    """Price per hour in micro-dollars."""
    started_at: Instant
    """When it began to cost."""
    ended_at: Instant | None
    """Null: it still costs."""
    amount_micros: int
    """Cost so far in micro-dollars."""
    training_micros: int
    """The part of it while the training made progress."""
    stalled_micros: int
    """A training ran, but made no progress."""
    idle_micros: int
    """Before the training started, and after it ended."""
    setup_micros: int = 0
    """The part of `idle_micros` before the training started."""
    source: str = Field(examples=["estimate"])
    """`provider`: as billed, and final; `estimate`: from rate and time."""

    @classmethod
    def of(cls, paid: PaidLine) -> Self:
        line, shares = paid.line, paid.shares
        return cls(
            job=line.job_id,
            rental=line.rental_label,
            kind=line.kind,
            rate_per_hour_micros=line.rate_per_hour,
            started_at=line.started_at,
            ended_at=line.ended_at,
            amount_micros=shares.total,
            training_micros=shares.training,
            stalled_micros=shares.stalled,
            idle_micros=shares.idle,
            setup_micros=shares.setup,
            source=line.source,
        )

    def value(self) -> PaidLine:
        line = CostLine(
            rental_label=self.rental,
            job_id=self.job,
            kind=self.kind,
            rate_per_hour=MicroDollars(self.rate_per_hour_micros),
            started_at=self.started_at,
            ended_at=self.ended_at,
            amount=MicroDollars(self.amount_micros),
            source=self.source,
        )
        shares = Shares(
            training=MicroDollars(self.training_micros),
            stalled=MicroDollars(self.stalled_micros),
            idle=MicroDollars(self.idle_micros),
            setup=MicroDollars(self.setup_micros),
        )
        return PaidLine(line=line, shares=shares)


class BudgetDocument(Document):
    """The limits on what one user spends, and how much of them is used."""

    user: str
    """Whose limits these are."""
    daily_limit_usd: Usd | None
    """Jobs wait in the queue as long as they would exceed it; null: no limit."""
    committed_usd: Usd
    """In the last 24 hours: what jobs have cost, and what those that run are expected to cost."""
    hourly_alert_usd: Usd | None
    """Operators get an alert when all machines together cost more per hour; null: never."""
    max_rentals: int
    """Machines that may be rented at the same time, per account."""

    @classmethod
    def of(cls, budget: Budget) -> Self:
        return cls(
            user=budget.user,
            daily_limit_usd=budget.daily_limit,
            committed_usd=budget.committed,
            hourly_alert_usd=budget.hourly_alert,
            max_rentals=budget.max_rentals,
        )

    def value(self) -> Budget:
        return Budget(
            user=self.user,
            daily_limit=self.daily_limit_usd,
            committed=self.committed_usd,
            hourly_alert=self.hourly_alert_usd,
            max_rentals=self.max_rentals,
        )


class CostPartDocument(Document):
    """What machines cost in one hour or day."""

    start: Instant
    """When the hour or day begins."""
    amount_usd: Usd
    """What all machines cost in it."""
    split_usd: dict[str, Usd] = Field(default={}, examples=[{}])
    """By the names that were asked for, those without a cost left out."""


class CostsOverTimeDocument(Document):
    """What machines cost in each hour or day; those that still run are counted until now."""

    start: Instant
    """When the first part begins."""
    end: Instant
    """When the last part ends."""
    part_seconds: float
    """Length of a part: an hour, or a day."""
    total_usd: Usd
    """The sum of all parts."""
    parts: tuple[CostPartDocument, ...]
    """The hours or days, oldest first."""

    @classmethod
    def of(cls, found: CostsOverTime) -> Self:
        period = found.period
        split = found.split or ({},) * period.count
        return cls(
            start=period.start,
            end=period.end,
            part_seconds=period.seconds,
            total_usd=found.total,
            parts=tuple(
                CostPartDocument(start=period.start + place * period.seconds, amount_usd=amount, split_usd=dict(names))
                for place, (amount, names) in enumerate(zip(found.amounts, split, strict=True))
            ),
        )

    def value(self) -> CostsOverTime:
        split = tuple(part.split_usd for part in self.parts)
        return CostsOverTime(
            period=Period(start=self.start, seconds=self.part_seconds, count=len(self.parts)),
            amounts=tuple(part.amount_usd for part in self.parts),
            split=split if any(split) else (),
        )
