"""Jobs: finding them, seeing how they stand, and wanting something of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import (
    Access,
    Alert,
    Checkpoint,
    CostLine,
    Desired,
    Job,
    Rental,
    Request,
    TrainedModel,
)
from stationmaster.money import MicroDollars


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job with all that belongs to it, as faces show it. `now` is the store's time of the look."""

    job: Job
    now: float
    shown: str
    stage: str
    cost: MicroDollars
    rentals: tuple[Rental, ...]
    costs: tuple[CostLine, ...]
    checkpoints: tuple[Checkpoint, ...]
    alerts: tuple[Alert, ...]
    access: Access | None
    trained: TrainedModel | None = None  # its model in the catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The answer to stop, cancel, save and sample."""

    job: Job
    note: str  # what will happen now, in words


class Jobs(Protocol):
    def find(self, reference: str) -> Job:
        """The job meant by an id, a unique beginning of one, or a name. Raises NotFound."""

    def with_id(self, job_id: str) -> Job | None:
        """The job with this very id, if there is one."""

    def view(self, job_id: str) -> JobView:
        """Raises NotFound."""

    def listed(self, *, with_ended: bool, limit: int = 100) -> Sequence[Job]:
        """Newest first."""

    def watch(self, job_id: str) -> Iterator[JobView]:
        """The job now, and again whenever something changed (or a second passed), until it has ended."""

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        """Ask for a stop or a cancel. Raises AlreadyEnded once an outcome is written."""

    def ask(self, job_id: str, request: Request) -> Wanted:
        """Ask a training for a checkpoint or for samples, now or once it runs. Raises AlreadyEnded, and IllegalMove
        where the training is over or its recipe cannot be asked.
        """

    def remove(self, job_id: str) -> None:
        """Forget an ended job, its files at home included. Raises NotFound, IllegalMove."""
