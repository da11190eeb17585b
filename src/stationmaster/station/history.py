"""The events, log and readings of a job, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stationmaster.model import Event, LogChunk, StepReading


class Events(Protocol):
    def of_job(self, job_id: str, *, after_version: int = 0) -> Sequence[Event]:
        """All events after that version of the job."""


class Logs(Protocol):
    def of_job(self, job_id: str, *, after_seq: int = 0) -> Sequence[tuple[int, LogChunk]]:
        """The next pieces of log with their numbers; repeat with the last number until the result is empty."""


class Readings(Protocol):
    def of_job(self, job_id: str) -> Sequence[StepReading]:
        """One reading per training step, in their order."""
