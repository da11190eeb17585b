"""What the rules look at, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from stationmaster.money import MicroDollars


class Reaction(StrEnum):
    """What is done about a finding; configurable per rule."""

    NOTE = "note"  # written down
    ALERT = "alert"  # and told
    STOP = "stop"  # and the run is ended, its checkpoint saved


class Confidence(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPoint:
    """A loss as it was printed; nan and inf are kept as such."""

    at: float
    step: int
    loss: float
    gradient_norm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One GPU at one moment."""

    at: float
    utilization_percent: float | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSample:
    at: float
    free_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoint:
    at: float
    step: int
    size_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewSample:
    """By how much the machine's wall clock is ahead of home's."""

    at: float
    ahead_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """A run as far as it is known; every rule is silent about what is not."""

    now: float
    started_at: float | None = None
    step: int | None = None
    total_steps: int | None = None
    phase: str | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    losses: Sequence[LossPoint] = ()
    gpus: Sequence[Sequence[GpuSample]] = ()
    disk: Sequence[DiskSample] = ()
    checkpoints: Sequence[SavedCheckpoint] = ()
    checkpoint_every_steps: int | None = None
    clock: Sequence[SkewSample] = ()
    max_seconds: float | None = None
    price_per_hour: MicroDollars | None = None
    spent: MicroDollars | None = None
    credit: MicroDollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something out of order, with the numbers that say so."""

    kind: str
    evidence: str
    confidence: Confidence
    about: str | None = None  # where a kind has several subjects, which of them

    @property
    def name(self) -> str:
        """What is told once: the kind, or the kind and its subject."""
        return self.kind if self.about is None else f"{self.kind} ({self.about})"


AnomalyRule = Callable[[Vitals], Anomaly | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An anomaly and what is to be done about it."""

    anomaly: Anomaly
    reaction: Reaction = field(default=Reaction.NOTE)
