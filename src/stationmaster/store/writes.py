"""What a worker writes about one job in one transaction."""

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
from stationmaster.series.blocks import Block

if TYPE_CHECKING:
    from stationmaster.analysis.report import Report
    from stationmaster.watch.baseline import RunFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to be written; the store gives it its number and time."""

    kind: str
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditHold:
    """Credits to set aside for an attempt: up to `most`, as far as the balance allows. `Funding.hold` gets the amount.

    If the balance is below `least`, nothing is set aside and `otherwise` replaces the whole write.
    """

    user: str
    job_id: str
    attempt: int
    least: MicroDollars
    most: MicroDollars
    otherwise: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Ends an attempt's hold: charges `charge` of it and returns the rest. Repeating it changes nothing."""

    job_id: str
    attempt: int
    charge: MicroDollars
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyCapCheck:
    """Whether `need` fits under the user's daily spending cap; if not, `otherwise` replaces the whole write."""

    user: str
    job_id: str
    need: MicroDollars
    cap: MicroDollars
    otherwise: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The job as it now is, with everything learnt on the way. `due_in` None: the job needs no further visit."""

    job: Job
    due_in: float | None = 0.0
    rentals: tuple[Rental, ...] = ()
    costs: tuple[CostLine, ...] = ()
    events: tuple[NewEvent, ...] = ()
    logs: tuple[LogChunk, ...] = ()
    readings: tuple[StepReading, ...] = ()
    series: tuple[Block, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    bad_machines: tuple[BadMachine, ...] = ()
    alerts: tuple[Alert, ...] = ()
    cleared_alerts: tuple[str, ...] = ()  # kinds; they may be raised again
    models: tuple[TrainedModel, ...] = ()  # for the catalogue
    past_run: RunFacts | None = None  # what later runs are compared with
    analysis: Report | None = None  # of the job's current attempt
    ledger: tuple[CreditHold | Settlement | DailyCapCheck, ...] = ()  # applied in this order, in the same transaction


def can_join(first: Write, then: Write) -> bool:
    """Whether two writes about a job, one after the other, can be one write: both only append rows."""
    return not any(
        (one.rentals, one.costs, one.bad_machines, one.alerts, one.cleared_alerts, one.models, one.ledger) != ((),) * 7
        or one.past_run is not None
        or one.analysis is not None
        for one in (first, then)
    )


def joined(first: Write, then: Write) -> Write:
    """Both writes as one. Only for writes that `can_join` allows."""
    return replace(
        then,
        events=(*first.events, *then.events),
        logs=(*first.logs, *then.logs),
        readings=(*first.readings, *then.readings),
        series=(*first.series, *then.series),
        checkpoints=(*first.checkpoints, *then.checkpoints),
    )
