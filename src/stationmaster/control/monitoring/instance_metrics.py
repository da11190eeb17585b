"""Rented machines as a person watches them: progress, health, cost and time left of each, and of all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.durations import format_duration
from stationmaster.money import ZERO, MicroDollars, cost

LOG_LINES = 10
"""How many lines of each machine's log are kept."""

_IDLE_PERCENT, _OVERUSED_PERCENT = 10.0, 95.0
_DIVERGING_LOSS = 10.0
_BROKEN = ("exited", "stopped", "offline")
_TRAJECTORY_HOURS = (1, 6, 24)


class InstanceHealth(StrEnum):
    HEALTHY = "healthy"
    WARNING = "warning"
    ERROR = "error"
    NEUTRAL = "neutral"  # nothing to judge: not running yet, or the GPU's load is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceMetrics:
    """What is known of one machine at `seen_at`; None where unknown. `stale`: the last look failed."""

    id: str
    gpu_type: str = "unknown"
    status: str = "running"
    label: str = ""
    epoch: float | None = None
    total_epochs: int | None = None
    step: int | None = None
    total_steps: int | None = None
    counts_epoch: bool = False  # `step` and `total_steps` restart with every epoch
    loss: float | None = None
    gpu_percent: float | None = None
    gpu_celsius: float | None = None
    memory_percent: float | None = None
    cost_per_hour: MicroDollars = ZERO
    total_cost: MicroDollars = ZERO
    runtime_seconds: float | None = None
    steps_per_second: float | None = None
    told_eta_seconds: float | None = None  # until `total_steps`, as the trainer prints it
    logs: tuple[str, ...] = ()
    logged_lines: int = 0  # in all, so that a reader can tell which of `logs` are new
    ssh: str | None = None  # command line to log in
    groups: tuple[str, ...] = ()  # of the settings, by name
    seen_at: float = 0.0
    stale: bool = False
    problem: str | None = None

    def progress_percentage(self) -> float | None:
        """How much of the training is done.

        >>> InstanceMetrics(id="1", step=500, total_steps=1000).progress_percentage()
        50.0
        """
        counted = self._counted()
        return None if counted is None else min(100.0, 100.0 * counted[0] / counted[1])

    def health_status(self) -> InstanceHealth:
        """Judged only while it runs. The edges of the healthy span are warnings.

        >>> InstanceMetrics(id="1", gpu_percent=95.0).health_status().value
        'warning'
        """
        if self.status in _BROKEN:
            return InstanceHealth.ERROR
        if self.status != "running":
            return InstanceHealth.NEUTRAL
        if self.loss is not None and not self.loss < _DIVERGING_LOSS:
            return InstanceHealth.WARNING
        if self.gpu_percent is None:
            return InstanceHealth.NEUTRAL
        busy = _IDLE_PERCENT < self.gpu_percent < _OVERUSED_PERCENT
        return InstanceHealth.HEALTHY if busy else InstanceHealth.WARNING

    def eta_seconds(self) -> float | None:
        """Time left: as the trainer prints it, else by its speed, else by the speed since the machine was rented."""
        counted = self._counted()
        if self.told_eta_seconds is not None and not (counted and self.counts_epoch):
            return self.told_eta_seconds
        if counted is None:
            return None
        done, total = counted
        if self.steps_per_second:
            return max(0, total - done) / self.steps_per_second
        if not done or self.runtime_seconds is None:
            return None
        return max(0, total - done) * self.runtime_seconds / done

    def eta(self) -> str:
        """
        >>> InstanceMetrics(id="1", step=500, total_steps=1000, runtime_seconds=2700.0).eta()
        '45m'
        """
        return format_duration(self.eta_seconds())

    def _counted(self) -> tuple[int, int] | None:
        """Steps done and total steps, over all epochs."""
        if self.step is None or not self.total_steps:
            return None
        if not self.counts_epoch or not self.total_epochs or not self.epoch or self.epoch < 1:
            return self.step, self.total_steps
        return (int(self.epoch) - 1) * self.total_steps + self.step, self.total_epochs * self.total_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancesSummary:
    """All machines together. `trajectory` is their cost after each number of hours if they all keep running."""

    running: int
    instances: int
    errors: int
    total_cost: MicroDollars
    cost_per_hour: MicroDollars
    average_cost_per_hour: MicroDollars
    average_gpu_percent: float | None
    average_memory_percent: float | None
    trajectory: tuple[tuple[int, MicroDollars], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All watched machines at one moment; `stale` when the provider did not answer."""

    at: float
    instances: tuple[InstanceMetrics, ...]
    summary: InstancesSummary
    stale: bool
    made_up: bool = False  # invented machines


def summarise(instances: Sequence[InstanceMetrics]) -> InstancesSummary:
    total = MicroDollars(sum(each.total_cost for each in instances))
    rate = MicroDollars(sum(each.cost_per_hour for each in instances))
    running = [each for each in instances if each.status == "running"]
    return InstancesSummary(
        running=len(running),
        instances=len(instances),
        errors=sum(each.health_status() is InstanceHealth.ERROR for each in instances),
        total_cost=total,
        cost_per_hour=rate,
        average_cost_per_hour=MicroDollars(rate // len(instances)) if instances else ZERO,
        average_gpu_percent=_average([each.gpu_percent for each in running]),
        average_memory_percent=_average([each.memory_percent for each in running]),
        trajectory=tuple((hours, MicroDollars(total + cost(rate, hours * 3600))) for hours in _TRAJECTORY_HOURS),
    )


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
