"""What a worker wants written about one job in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.model import Alert, BadMachine, Checkpoint, CostLine, Job, LogChunk, Rental, StepReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event before it has its number."""

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The job as it now is, with everything learnt on the way. `due_in` None: no further visit is needed."""

    job: Job
    due_in: float | None = 0.0
    rentals: tuple[Rental, ...] = ()
    costs: tuple[CostLine, ...] = ()
    events: tuple[Told, ...] = ()
    logs: tuple[LogChunk, ...] = ()
    readings: tuple[StepReading, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    bad_machines: tuple[BadMachine, ...] = ()
    alerts: tuple[Alert, ...] = ()
    cleared_alerts: tuple[str, ...] = ()  # kinds that may be raised anew
