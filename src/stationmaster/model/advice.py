"""What a job takes over from the analysis of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def text_of(value: Any) -> str:
    """A value as a person writes it.

    >>> text_of(True), text_of(5e-05), text_of([512, 768])
    ('true', '5e-05', '512, 768')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ", ".join(text_of(each) for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


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

    @property
    def change(self) -> str:
        """The change as `batch_size: 8 -> 2`."""
        return f"{self.what}: {text_of(self.before)} -> {text_of(self.after)}"


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

    gpus: int | None = None
    vram_gib: float | None = None
    disk_gib: float | None = None
    memory_gib: float | None = None  # limit of the container
    shm_gib: float | None = None  # shared memory of the container
    avoided_machines: tuple[str, ...] = ()
