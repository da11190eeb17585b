"""What a training produces: logs, readings and files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """A piece of a step's log: byte offsets of the file on the machine, text with fewer progress-bar redraws."""

    attempt: int
    stream: str
    start: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReading:
    """Training values at a step, as read from the log."""

    attempt: int
    at: float
    step: int
    loss: float | None = None
    learning_rate: float | None = None
    steps_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A file that the training wrote. `verified_at` is set once its hash was checked at its new location."""

    attempt: int
    path: str  # on the machine, relative to the job root
    kind: str  # checkpoint, sample, log, metrics
    size: int
    step: int | None = None
    sha256: str | None = None
    location: str | None = None
    verified_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A declared output on the machine; `sha256` only in an inventory."""

    path: str
    kind: str
    size: int
    mtime: float
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHealth:
    """The verdict of an attempt's analysis: good, warning, critical or unknown, and the first recommendation."""

    attempt: int
    health: str
    headline: str | None = None
