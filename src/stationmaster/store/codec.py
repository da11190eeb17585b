"""Converts rows to model objects and back. Reading is tolerant: it ignores keys that newer code wrote."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy.engine import RowMapping

from stationmaster.model import (
    AdoptedTraining,
    AppliedAdvice,
    Checkpoint,
    CostLine,
    DatasetRef,
    Desired,
    Event,
    Job,
    JobSpec,
    MachineWish,
    Offer,
    Outcome,
    Progress,
    Quote,
    Reason,
    Rental,
    RentalState,
    State,
)
from stationmaster.money import MicroDollars
from stationmaster.store.attempt_codec import attempt_from_text
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.tables import jobs

Value = TypeVar("Value")
Row = RowMapping | Mapping[str, Any]


def known_fields(cls: type[Value], data: Mapping[str, Any]) -> Value:
    """A dataclass made from the keys of `data` that it has fields for."""
    names = _field_names(cls)
    return cls(**{key: value for key, value in data.items() if key in names})


def spec_to_text(spec: JobSpec) -> str:
    return dumps(dataclasses.asdict(spec))


@lru_cache(maxsize=2048)  # a job's spec never changes, and every claim reads it
def spec_from_text(text: str) -> JobSpec:
    data = loads(text)
    data["dataset"] = known_fields(DatasetRef, data["dataset"])
    data["quote"] = known_fields(Quote, data["quote"])
    data["machine"] = _wish_from(data.get("machine", {}))
    data["adopted"] = _adopted_from(data.get("adopted"))
    data["unneeded_secrets"] = tuple(data.get("unneeded_secrets", ()))
    data["applied"] = tuple(known_fields(AppliedAdvice, each) for each in data.get("applied", ()))
    return known_fields(JobSpec, data)


def _wish_from(data: Mapping[str, Any]) -> MachineWish:
    wish = known_fields(MachineWish, data)
    return dataclasses.replace(wish, avoided_machines=tuple(wish.avoided_machines))


def _adopted_from(data: Mapping[str, Any] | None) -> AdoptedTraining | None:
    if data is None:
        return None
    adopted = known_fields(AdoptedTraining, data)
    return dataclasses.replace(adopted, unknown=tuple(adopted.unknown))


def progress_to_text(progress: Progress) -> str:
    return dumps({key: value for key, value in shallow(progress).items() if value is not None})


def job_from_row(row: RowMapping) -> Job:
    return Job(
        spec=spec_from_text(row["spec"]),
        state=State(row["state"]),
        desired=Desired(row["desired"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=Reason(row["reason"]) if row["reason"] else None,
        progress=known_fields(Progress, loads(row["progress"])),
        **{name: row[name] for name in _UNCHANGED_JOB_COLUMNS},
        **attempt_from_text(row["memory"]),
    )


def rental_to_row(rental: Rental) -> dict[str, Any]:
    row = shallow(rental)
    row["offer"] = dumps(shallow(rental.offer)) if rental.offer else None
    return row


def rental_from_row(row: Row) -> Rental:
    data = dict(row)
    data["state"] = RentalState(row["state"])
    data["offer"] = known_fields(Offer, loads(row["offer"])) if row["offer"] else None
    return known_fields(Rental, data)


def cost_line_from_row(row: Row) -> CostLine:
    data = dict(row)
    data["rate_per_hour"] = MicroDollars(row["rate_per_hour"])
    data["amount"] = MicroDollars(row["amount"])
    return known_fields(CostLine, data)


def event_from_row(row: Row) -> Event:
    return known_fields(Event, {**row, "payload": loads(row["payload"])})


def checkpoint_from_row(row: Row) -> Checkpoint:
    return known_fields(Checkpoint, dict(row))


def shallow(value: Any) -> dict[str, Any]:
    """A dataclass as a dict of its fields, values unchanged."""
    return {name: getattr(value, name) for name in _field_names(type(value))}


_NAMES: dict[type, dict[str, None]] = {}


def _field_names(cls: type) -> dict[str, None]:
    """The names in their order; whether one is among them is found fast."""
    if cls not in _NAMES:
        _NAMES[cls] = dict.fromkeys(item.name for item in dataclasses.fields(cls))
    return _NAMES[cls]


#: Columns that a job has as fields of the same name and value.
_UNCHANGED_JOB_COLUMNS = tuple(
    name
    for name in _field_names(Job)
    if name in jobs.c and name not in ("spec", "state", "desired", "outcome", "reason", "progress")
)
