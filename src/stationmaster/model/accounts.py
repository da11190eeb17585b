"""Money that was spent, and credits that it is spent from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.model.open_enum import OpenEnum
from stationmaster.money import ZERO, MicroDollars, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A training that ended well: what it was, where it ran, and how long its steps took together."""

    parameters: Mapping[str, Any]
    images: int
    gpu: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What one rental cost: estimated by rate and time until the provider's own charges are known."""

    rental_label: str
    job_id: str
    kind: str  # gpu, disk, traffic
    rate_per_hour: MicroDollars
    started_at: float
    ended_at: float | None
    amount: MicroDollars
    source: str  # estimate, provider

    def so_far(self, *, now: float) -> MicroDollars:
        """What it comes to by now: one that is open grows with time."""
        if self.ended_at is not None:
            return self.amount
        return cost(self.rate_per_hour, max(0.0, now - self.started_at))


class EntryKind(OpenEnum):
    """What an entry of the ledger is."""

    GRANT = "GRANT"  # a gift
    TOP_UP = "TOP_UP"  # paid for
    REWARD = "REWARD"  # for the owner of a dataset or model, by the operator's policy
    ADJUSTMENT = "ADJUSTMENT"  # put right by an operator
    REFUND = "REFUND"  # of what a job was charged, by an operator
    HOLD = "HOLD"  # set aside when a job is claimed
    SETTLEMENT = "SETTLEMENT"  # the part of a hold that was charged
    RELEASE = "RELEASE"  # the part of a hold that came back
    EXPIRY = "EXPIRY"  # what nobody spent in time


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One movement of one person's credits; never changed. `balance` and `held` are what it adds to each."""

    seq: int
    user: str
    kind: EntryKind
    lot: str
    balance: MicroDollars
    held: MicroDollars
    job: str | None = None
    attempt: int | None = None
    part: int = 0
    key: str | None = None
    note: str = ""
    actor: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditLot:
    """Credits that came in together."""

    id: str
    user: str
    amount: MicroDollars
    remaining: MicroDollars
    expires_at: float | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditAccount:
    """What a person can spend, and what is held for their jobs."""

    user: str
    balance: MicroDollars = ZERO
    held: MicroDollars = ZERO
    lots: tuple[CreditLot, ...] = ()  # in the order in which they are spent


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerProof:
    """What was checked of the ledger, and every sentence that is not true."""

    entries: int
    accounts: int
    balance: MicroDollars
    held: MicroDollars
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems
