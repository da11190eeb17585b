"""The events, log and readings of a job, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import Event, LogChunk, StepReading


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMatch:
    """A line of a log that contains the text that was searched for."""

    number: int  # among all matches of this search, from 1
    seq: int  # of the piece of log in which the line ends
    attempt: int
    stream: str  # step and try
    line: int  # its number in the stored log of that stream, from 1
    text: str  # without its end; a very long line is cut


class Events(Protocol):
    def of_job(self, job_id: str, *, after_version: int = 0, limit: int | None = None) -> Sequence[Event]:
        """All events after that version of the job, or the first `limit` of them."""

    def after(self, seq: int, *, owner: str | None = None, limit: int = 500) -> Sequence[Event]:
        """The next events of all jobs that the caller may see, by their `seq`; with an `owner` only of their jobs.

        An event may become visible after one with a higher number, within seconds: to miss none, read again from a
        little earlier. The job and its version identify an event.
        """


class Logs(Protocol):
    def of_job(self, job_id: str, *, after_seq: int = 0, limit: int = 500) -> Sequence[tuple[int, LogChunk]]:
        """The next pieces of log with their numbers; repeat with the last number until the result is empty."""

    def latest(self, job_id: str, *, limit: int = 100) -> Sequence[tuple[int, LogChunk]]:
        """The last pieces of log with their numbers, in their order."""

    def follow(self, job_id: str, *, after_seq: int = 0) -> Iterator[Sequence[tuple[int, LogChunk]]]:
        """The log after that piece, then every new piece as soon as it is there, until the job has ended."""

    def search(self, job_id: str, text: str, *, limit: int = 100, after: int = 0) -> Sequence[LogMatch]:
        """Lines that contain `text`, in upper or lower case, from the beginning of the log on; not those up to the
        match numbered `after`. Raises UserError for a text that no line can contain.
        """


class Readings(Protocol):
    def of_job(self, job_id: str) -> Sequence[StepReading]:
        """One reading per training step, in their order."""

    def numbered(self, job_id: str, *, after_seq: int = 0, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        """The next readings with their numbers; repeat with the last number until the result is empty."""

    def latest(self, job_id: str, *, limit: int = 1000) -> Sequence[tuple[int, StepReading]]:
        """The last readings with their numbers, in their order."""

    def loss_trend(self, job_id: str) -> Sequence[float]:
        """The loss of the current attempt as a few dozen values in the order of its steps: the lowest and the highest
        of each part of the run, however long it is. Raises NotFound for an unknown job.
        """
