"""The interface that CLI, TUI and API all use, and the values it speaks in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from stationmaster.control.billing.breakdown import Shares
from stationmaster.datasets.sources.reference import Source
from stationmaster.model import (
    Access,
    Alert,
    Checkpoint,
    CostLine,
    Desired,
    Event,
    Job,
    LogChunk,
    Quote,
    Rental,
    Request,
    StepReading,
    TrainedModel,
)
from stationmaster.money import MicroDollars


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What a person asks for, before anything is checked."""

    recipe: str
    dataset: Source
    name: str | None = None
    trigger: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None
    account: str | None = None
    id: str | None = None
    owner: str | None = None  # whom the messages go to; None: the single user of the settings
    max_price: MicroDollars | None = None
    max_hours: float | None = None
    max_spend: MicroDollars | None = None
    monitoring: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a request would come to: checked in full, nothing written, nothing rented."""

    name: str
    recipe: str
    provider: str
    parameters: Mapping[str, Any]
    images: int
    rows: int
    dataset_bytes: int
    quote: Quote
    max_seconds: float
    max_spend: MicroDollars
    steps: tuple[PlannedStep, ...]
    notes: tuple[str, ...]
    spend_note: str | None = None  # why the money limit is not twice the high figure of the quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a further job like an ended one would take and cost now, and its limits. Nothing is searched again after."""

    quote: Quote
    max_seconds: float
    max_spend: MicroDollars
    notes: tuple[str, ...]
    spend_note: str | None = None


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
class PaidLine:
    """A cost line, and what of it was which."""

    line: CostLine
    shares: Shares


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    job: Job
    created: bool  # False: a job with this id was there already


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The answer to stop, cancel, save and sample."""

    job: Job
    note: str  # what will happen now, in words


class Station(Protocol):
    """One installation. Every method raises StationmasterError and nothing else for what a person can cause."""

    def preview(self, request: TrainRequest) -> Preview:
        """Check a request in full: recipe, parameters, dataset, offers, price. Writes nothing."""

    def require_key(self, provider: str | None, account: str | None = None) -> None:
        """A machine rented there would let us in. Raises ConfigInvalid where it takes a key pair that is not here."""

    def submit(self, request: TrainRequest) -> Accepted:
        """Queue a job; the same `id` again answers with the job that is there."""

    def retried(self, reference: str) -> Job:
        """The ended job that can be run again. Raises NotFound, IllegalMove."""

    def retry_terms(self, reference: str) -> Terms:
        """What running an ended job again would take and cost: checked as a new request is. Writes nothing."""

    def retry(
        self, reference: str, *, resume: bool = False, new_id: str | None = None, terms: Terms | None = None
    ) -> Accepted:
        """A new job like an old one, at the terms that were shown, else at those of now.

        `resume` goes on from the old job's best checkpoint.
        """

    def find(self, reference: str) -> Job:
        """The job meant by an id, a unique beginning of one, or a name. Raises NotFound."""

    def view(self, job_id: str) -> JobView: ...

    def costs(self, job_id: str | None = None) -> list[PaidLine]:
        """What machines cost, oldest first: a job's, or all there is."""

    def jobs(self, *, with_ended: bool, limit: int = 100) -> Sequence[Job]:
        """Newest first."""

    def desire(self, job_id: str, desired: Desired) -> Wanted:
        """Ask for a stop or a cancel. Raises AlreadyEnded once an outcome is written."""

    def ask(self, job_id: str, request: Request) -> Wanted:
        """Ask a training for a checkpoint or for samples, now or once it runs. Raises AlreadyEnded, and IllegalMove
        where the training is over or its recipe cannot be asked.
        """

    def remove(self, job_id: str) -> None:
        """Forget an ended job, its files at home included."""

    def events(self, job_id: str, *, after_version: int = 0) -> Sequence[Event]: ...

    def logs(self, job_id: str, *, after_seq: int = 0) -> Sequence[tuple[int, LogChunk]]: ...

    def readings(self, job_id: str) -> Sequence[StepReading]: ...

    def watch(self, job_id: str) -> Iterator[JobView]:
        """The job now, and again whenever something changed (or a second passed), until it has ended."""

    def pull(self, job_id: str, target: Path) -> Sequence[Path]:
        """Copy what a job brought home to a folder, verified; each file keeps the path that it had on the machine."""

    def models(self) -> Sequence[TrainedModel]:
        """The catalogue, newest first."""

    def model(self, reference: str) -> TrainedModel:
        """The model meant by a slug, the beginning of one, a name or a job. Raises NotFound."""

    def publish(self, reference: str) -> TrainedModel:
        """Put a model that is at home on the Hub, with samples and card; what is there already is not sent again."""

    def download(self, reference: str, target: Path) -> Path:
        """A verified copy of a model in a folder, from wherever it lies."""

    def now(self) -> float: ...

    def close(self) -> None: ...
