"""What a worker wants written about one job in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stationmaster.model import (
    Alert,
    BadMachine,
    Checkpoint,
    CostLine,
    Job,
    LogChunk,
    Rental,
    StepReading,
    TrainedModel,
)
from stationmaster.money import MicroDollars

if TYPE_CHECKING:
    from stationmaster.watch.baseline import RunFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event before it has its number."""

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Credits set aside for an attempt: as much as there is up to `most`. The job remembers the amount as `hold`.

    With less than `least` nothing is set aside, and `otherwise` is written in the place of the whole write.
    """

    user: str
    job_id: str
    attempt: int
    least: MicroDollars
    most: MicroDollars
    otherwise: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The end of an attempt's hold: `charge` of it is taken, the rest comes back. Once, however often it is asked."""

    job_id: str
    attempt: int
    charge: MicroDollars
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Room for `need` in what a person's jobs may cost within a day; without it `otherwise` is written instead."""

    user: str
    job_id: str
    need: MicroDollars
    cap: MicroDollars
    otherwise: Write


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
    models: tuple[TrainedModel, ...] = ()  # in the catalogue
    past_run: RunFacts | None = None  # what later runs are compared with
    ledger: tuple[Hold | Settlement | Room, ...] = ()  # in this order, in the same transaction


def can_join(first: Write, then: Write) -> bool:
    """Whether two writes about a job, one after the other, are as good as one: what only adds up, in any number."""
    return not any(
        (one.rentals, one.costs, one.bad_machines, one.alerts, one.cleared_alerts, one.models, one.ledger) != ((),) * 7
        or one.past_run is not None
        for one in (first, then)
    )


def joined(first: Write, then: Write) -> Write:
    """Both writes as one; only for those that `can_join`."""
    return replace(
        then,
        events=(*first.events, *then.events),
        logs=(*first.logs, *then.logs),
        readings=(*first.readings, *then.readings),
        checkpoints=(*first.checkpoints, *then.checkpoints),
    )
