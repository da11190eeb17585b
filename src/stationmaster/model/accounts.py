"""Costs, and the credits they are paid from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.model.open_enum import OpenEnum
from stationmaster.money import ZERO, MicroDollars, cost


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A completed training: its parameters, its GPU, how long all its steps took, and how much memory."""

    parameters: Mapping[str, Any]
    images: int
    gpu: str | None
    seconds: float
    peak_gpu_gib: float | None = None  # of the fullest GPU
    gpu_gib: float | None = None  # the memory that this GPU has


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What one rental cost: estimated by rate and time until the provider's bill is known."""

    rental_label: str
    job_id: str
    kind: str  # gpu, disk, traffic
    rate_per_hour: MicroDollars
    started_at: float
    ended_at: float | None
    amount: MicroDollars
    source: str  # estimate, provider

    def so_far(self, *, now: float) -> MicroDollars:
        """The amount by now; an open line grows with time."""
        if self.ended_at is not None:
            return self.amount
        return cost(self.rate_per_hour, max(0.0, now - self.started_at))


class EntryKind(OpenEnum):
    """The kind of a ledger entry."""

    GRANT = "GRANT"  # a gift
    TOP_UP = "TOP_UP"  # paid for
    REWARD = "REWARD"  # for the owner of a dataset or model; the operator decides
    ADJUSTMENT = "ADJUSTMENT"  # correction by an operator
    REFUND = "REFUND"  # of a job's charge, by an operator
    HOLD = "HOLD"  # set aside when a worker claims a job
    SETTLEMENT = "SETTLEMENT"  # the part of a hold that was charged
    RELEASE = "RELEASE"  # the part of a hold that was returned
    EXPIRY = "EXPIRY"  # credits that expired unspent


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One movement of one user's credits; never changed. `balance` and `held` are what it adds to each."""

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
    """What a user can spend, and what is held for their jobs."""

    user: str
    balance: MicroDollars = ZERO
    held: MicroDollars = ZERO
    lots: tuple[CreditLot, ...] = ()  # in spending order


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerProof:
    """The result of checking the ledger; `problems` lists everything that does not add up."""

    entries: int
    accounts: int
    balance: MicroDollars
    held: MicroDollars
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems
