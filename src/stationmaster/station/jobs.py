"""Jobs: find them, show them, stop or cancel them, send them requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from stationmaster.model import (
    Access,
    Alert,
    Checkpoint,
    CostLine,
    Desired,
    Job,
    Rental,
    Request,
    RunHealth,
    State,
    TrainedModel,
)
from stationmaster.money import MicroDollars
from stationmaster.station.cursor import cursor_behind

if TYPE_CHECKING:
    from stationmaster.station.comparison import Comparison
    from stationmaster.station.plans import JobPlan

_EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job with everything that belongs to it, as faces show it. `now` is the store's time of the view."""

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
    peak_gpu_gib: float | None = None  # of the fullest GPU in the current attempt; None: not measured
    gpu_gib: float | None = None  # the memory that this GPU has
    health: RunHealth | None = None  # by the analysis of the last attempt that trained
    last_steps_per_second: float | None = None  # also after the end, where `job.progress` has no speed; for comparisons

    @property
    def at_risk(self) -> str | None:
        """What would be lost with the machine, in words; None if nothing would, as where the machine stays."""
        training = self.job.spec.adopted
        if training is not None and not training.release:
            return None
        found = [one for one in self.checkpoints if one.kind == "checkpoint" and one.verified_at is None]
        steps = [one.step for one in found if one.step is not None]
        if steps:
            return f"the checkpoint of step {max(steps)}"
        return "the finished model" if found else None

    @property
    def rented_seconds(self) -> float:
        """How long the job has had its machines so far, all attempts together."""
        spans = ((rental.held_at, rental.gone_at or self.now) for rental in self.rentals)
        return sum(_milliseconds_between(begin, end) for begin, end in spans if begin is not None) / 1000

    @property
    def taken_seconds(self) -> float:
        """From the job's submission to its end, or until now."""
        end = self.now if self.job.ended_at is None else self.job.ended_at
        return _milliseconds_between(self.job.created_at, end) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The answer to stop, cancel, save and sample."""

    job: Job
    note: str  # what happens now, as a sentence


def _milliseconds_between(begin: float, end: float) -> int:
    """0 if the end comes first. Between the times as JSON has them, so that it is the same here and from a server."""
    return max(0, _milliseconds(end) - _milliseconds(begin))


def _milliseconds(at: float) -> int:
    """Rounded as JSON's times are, which first become whole microseconds.

    >>> _milliseconds(1_795_111_681.123), _milliseconds(1_795_962_912.8039994)
    (1795111681123, 1795962912803)
    """
    return (datetime.fromtimestamp(at, UTC) - _EPOCH) // timedelta(milliseconds=1)


def job_cursor(job: Job) -> str:
    """Where the page behind this job begins."""
    return cursor_behind(job.created_at, job.id)


class Jobs(Protocol):
    def find(self, reference: str, *, owner: str | None = None) -> Job:
        """The job with this id, unique beginning of an id, or name; with `owner`, among theirs. Raises NotFound."""

    def with_id(self, job_id: str) -> Job | None:
        """The job with exactly this id, if it exists."""

    def view(self, job_id: str, *, watching: bool = False) -> JobView:
        """Raises NotFound. `watching`: the caller looks again within seconds, so a worker should look often too."""

    def listed(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[Job]:
        """Newest first, of one owner and in one state if they are given. Raises UserError for an unknown cursor."""

    def views(
        self,
        *,
        with_ended: bool,
        limit: int = 100,
        owner: str | None = None,
        state: State | None = None,
        after: str | None = None,
    ) -> Sequence[JobView]:
        """The same jobs with everything that belongs to them, in few queries however many there are."""

    def compare(self, references: Sequence[str]) -> Comparison:
        """Two to ten jobs side by side. Raises NotFound, and UserError for too few or too many jobs."""

    def plan(self, job_id: str) -> JobPlan:
        """The plan of the job's current attempt, with what became of its steps. Raises NotFound."""

    def watch(self, job_id: str) -> Iterator[JobView]:
        """The job now, and again after every change or second, until it ends."""

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        """Request a stop or a cancel. Raises AlreadyEnded once the job has an outcome."""

    def ask(self, job_id: str, request: Request) -> Wanted:
        """Request a checkpoint or samples of a training, now or once it runs. Raises AlreadyEnded, and IllegalMove if
        the training is over or its recipe does not support this.
        """

    def remove(self, job_id: str) -> None:
        """Delete an ended job with its local files. Raises NotFound, IllegalMove."""
