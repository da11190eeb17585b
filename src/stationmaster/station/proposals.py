"""Proposals: what a training would take and cost, shown to a person, and submitted as it was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stationmaster.datasets.sources.reference import DatasetReference
from stationmaster.model import Job, Quote
from stationmaster.money import MicroDollars
from stationmaster.station.datasets import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What a person asks for, before anything is checked."""

    recipe: str
    dataset: DatasetReference
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
class RetryRequest:
    """A new job like an ended one; `resume` goes on from the old job's best checkpoint."""

    job: str  # an id, a unique beginning of one, or a name
    resume: bool = False
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A question about time and money, before there is even a dataset."""

    recipe: str
    images: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None
    max_price: MicroDollars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    provider: str
    quote: Quote
    max_price_per_hour: MicroDollars
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a request comes to: checked in full. Nothing is rented."""

    name: str
    recipe: str
    provider: str
    parameters: Mapping[str, Any]
    images: int
    rows: int
    dataset_bytes: int
    quote: Quote
    max_price_per_hour: MicroDollars  # no worker pays more, and none takes a slower GPU than the quote's
    max_seconds: float
    max_spend: MicroDollars
    steps: tuple[PlannedStep, ...]
    notes: tuple[str, ...]
    spend_note: str | None = None  # why the money limit is not twice the high figure of the quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Terms that are kept for a while, so that what a person says yes to is what is submitted."""

    id: str
    owner: str | None
    job_id: str  # the id that the job will have
    created_at: float
    expires_at: float
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    job: Job
    created: bool  # False: a job with this id was there already


class Proposals(Protocol):
    def check(self, request: TrainRequest | RetryRequest, *, progress: Progress | None = None) -> Terms:
        """Check a request in full: recipe, parameters, dataset, offers, price. Writes nothing.

        `progress` is called while a dataset is downloaded.
        """

    def propose(self, request: TrainRequest | RetryRequest, *, progress: Progress | None = None) -> Proposal:
        """Check a request as `check` does and keep what came of it, the packed dataset included, until it expires.

        Raises ConfigInvalid where the provider's machines would not let us in.
        """

    def find(self, proposal_id: str) -> Proposal:
        """Raises NotFound for one that never was, was withdrawn, or has expired."""

    def submit(self, proposal_id: str) -> Accepted:
        """Queue the job exactly as it was proposed; nothing is searched or read again. Repeating it changes nothing.

        Raises NotFound as `find` does, OutOfCredit where the owner's credits do not suffice any more.
        """

    def withdraw(self, proposal_id: str) -> None:
        """Delete the proposal, and the packed dataset unless something else uses it."""

    def estimate(self, request: EstimateRequest) -> Estimate:
        """Estimate time and cost of a training on that many images now, with the assumptions. Writes nothing."""
