"""What machines cost, line by line."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import CostLine
from stationmaster.money import MicroDollars
from stationmaster.station.costs import PaidLine, Shares
from stationmaster.station.wire.document import Document, Instant


class PaidLineDocument(Document):
    """What one machine cost, and its split into training, stalled and idle time."""

    job: str
    rental: str
    """The label of the machine."""
    kind: str = Field(examples=["gpu"])
    rate_per_hour_micros: int
    started_at: Instant
    ended_at: Instant | None
    """Null: it still costs."""
    amount_micros: int
    training_micros: int
    stalled_micros: int
    """A training ran, but made no progress."""
    idle_micros: int
    """Before the training started, and after it ended."""
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
        )
        return PaidLine(line=line, shares=shares)
