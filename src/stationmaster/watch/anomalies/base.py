"""What the anomaly rules read (`Vitals`) and what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.money import MicroDollars


class Reaction(StrEnum):
    """What to do about an anomaly; configurable per rule."""

    NOTE = "note"  # record it
    ALERT = "alert"  # and send an alert
    STOP = "stop"  # and stop the run, keeping its checkpoint


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
class MemoryPeak:
    """The highest use of a pool of memory so far: a GPU's, or the system's, which in a container is its limit."""

    used_gb: float
    size_gb: float
    gpu: int | None = None  # its index; None: the system's memory

    @property
    def share(self) -> float:
        return self.used_gb / self.size_gb


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
    """How far the machine's wall clock is ahead of ours."""

    at: float
    ahead_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What is known of a run. A rule finds nothing where its values are unknown."""

    now: float
    started_at: float | None = None
    step: int | None = None
    total_steps: int | None = None
    phase: str | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    losses: Sequence[LossPoint] = ()
    gpus: Sequence[Sequence[GpuSample]] = ()
    memory: Sequence[MemoryPeak] = ()
    memory_warning_share: float = 0.85
    memory_critical_share: float = 0.95
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
    """Something that is wrong with a run, with the numbers that show it."""

    kind: str
    evidence: str
    confidence: Confidence
    about: str | None = None  # which measure, for a kind with several

    @property
    def name(self) -> str:
        """What is reported only once: the kind, or the kind and its measure."""
        return self.kind if self.about is None else f"{self.kind} ({self.about})"


AnomalyRule = Callable[[Vitals], Anomaly | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyFinding:
    """An anomaly and what to do about it."""

    anomaly: Anomaly
    reaction: Reaction
