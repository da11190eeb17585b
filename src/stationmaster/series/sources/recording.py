"""What a file of another tool holds of a training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

#: Steps and ids are stored as 64-bit numbers.
_LARGEST_STEP = 2**63 - 1


class Scalar(NamedTuple):
    """One value at one step, under the name that the tool uses; `at` is None where the file has no times."""

    name: str
    step: int
    at: float | None
    value: float | None


class MachineValue(NamedTuple):
    """One value of the machine: `table` and `column` are those of a run's database, `gpu` is None outside GpuSample."""

    table: str
    column: str
    at: float
    gpu: int | None
    value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything that a source found, in the order of the file; `notes` says in plain words what was left out."""

    scalars: list[Scalar] = field(default_factory=list)
    machine: list[MachineValue] = field(default_factory=list)
    info: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def finite(value: float) -> float | None:
    """The value, or None for nan and infinity: a database has neither."""
    return value if math.isfinite(value) else None


def step_number(value: float) -> int | None:
    """The step as a whole number; None if it is no step."""
    return int(value) if 0 <= value <= _LARGEST_STEP else None
