"""What a job takes over from the analysis of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedAdvice:
    """A recommendation that a job follows."""

    number: int
    """Its place in the analysis, from 1."""
    what: str
    """The parameter that changes, or what is asked of the machine, as `machine.disk_gb`."""
    before: Any
    after: Any
    severity: str
    title: str
    config_path: str
    note: str | None = None
    """How the value differs from the recommended one, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedAdvice:
    """A recommendation that a job does not follow, and why."""

    number: int
    severity: str
    title: str
    config_path: str
    recommended_value: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineWish:
    """What a job asks of its machine beyond what its recipe needs."""

    vram_gib: float | None = None
    disk_gib: float | None = None
    avoided_machines: tuple[str, ...] = ()
