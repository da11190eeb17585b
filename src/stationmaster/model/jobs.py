"""A job: its specification, its state, how it ended, and its events and alerts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stationmaster.model.adopted import UNLIMITED_SECONDS, AdoptedTraining
from stationmaster.model.advice import AppliedAdvice, MachineWish
from stationmaster.model.attempt import (
    Collection,
    Ending,
    Fetching,
    Funding,
    RentedMachine,
    Requests,
    SavedModel,
    Setbacks,
    Watching,
)
from stationmaster.model.states import Desired, Outcome, Reason, Request, State
from stationmaster.money import MicroDollars

SINGLE_USER = "me"
"""The user of the settings: owner of every job that names no other."""


REMOVED_MARK = "~"
"""Stands behind a removed job's id, before the time when it was submitted, in the cost lines that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRef:
    """A packed dataset, stored locally."""

    source: str
    archive: str
    sha256: str
    size: int
    images: int


NO_DATASET = DatasetRef(source="", archive="", sha256="", size=0, images=0)
"""Of a training that was started by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Hours, price and GPU memory of a job before it starts."""

    hours_low: float
    hours_expected: float
    hours_high: float
    price_per_hour: MicroDollars
    cost_low: MicroDollars
    cost_expected: MicroDollars
    cost_high: MicroDollars
    gpu: str | None = None  # that the hours are for
    past_runs: int = 0  # number of earlier runs that corrected the hours
    reference_hours: float | None = None  # on an RTX 4090, to compare offers with other GPUs
    fixed_hours: float = 0.0  # the part that is the same on every GPU
    disk_gib: float = 0.0  # requested; the price includes what is rented
    traffic_gib: float = 0.0  # included in the price
    memory_low_gib: float | None = None  # of one GPU, at the peak; None: not predicted
    memory_expected_gib: float | None = None
    memory_high_gib: float | None = None
    memory_runs: int = 0  # number of earlier runs that the memory rests on
    memory_basis: str = ""  # what it rests on, or why it is not predicted
    gpu_gib: float | None = None  # the memory that the GPU has
    min_vram_gib: float | None = None  # that a GPU must be sold with; None: what the recipe needs
    offer: str | None = None  # id of the offer that it is for, which is tried first; None: any that fits


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What the user asked for; never changes."""

    id: str
    name: str
    recipe: str  # name@version
    provider: str
    dataset: DatasetRef
    quote: Quote
    max_seconds: float
    max_spend: MicroDollars
    max_price_per_hour: MicroDollars | None = None
    trigger: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    owner: str | None = None
    monitoring: Mapping[str, Any] = field(default_factory=dict)
    retry_of: str | None = None
    resume_from: str | None = None  # path of a verified local checkpoint
    resume_step: int | None = None  # the training step at which it was made
    resume_state: str | None = None  # path of what the trainer reads beside it
    machine: MachineWish = field(default_factory=MachineWish)
    applied: tuple[AppliedAdvice, ...] = ()  # what it follows of the analysis of `retry_of`
    adopted: AdoptedTraining | None = None  # a training that was started by hand, which the job only watches
    unneeded_secrets: tuple[str, ...] = ()  # of the recipe's: the job downloads nothing that they open

    @property
    def has_time_limit(self) -> bool:
        return self.max_seconds < UNLIMITED_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of the training, as last read."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    loss: float | None = None
    first_loss: float | None = None
    learning_rate: float | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    phase: str | None = None
    phase_since: float | None = None
    active_step: str | None = None
    at: float | None = None

    @property
    def percent(self) -> float | None:
        if self.step is None or not self.total_steps:
            return None
        return round(100.0 * self.step / self.total_steps, 1)

    @property
    def finite_loss(self) -> float | None:
        """The loss, for JSON that has no word for nan; None where it is not a number."""
        return self.loss if self.loss is not None and math.isfinite(self.loss) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it is now; the parts from `machine` on belong to the current attempt unless they say otherwise."""

    spec: JobSpec
    created_at: float
    state: State
    state_since: float
    version: int = 0
    desired: Desired = Desired.RUN
    desired_seq: int = 0
    seen_seq: int = 0
    saves_asked: int = 0  # how often the user requested a checkpoint
    samples_asked: int = 0
    outcome: Outcome | None = None
    reason: Reason | None = None
    explanation: str | None = None
    attempt: int = 0
    failed_before_login: int = 0
    failed_after_login: int = 0
    due_at: float | None = None
    deadline_at: float | None = None
    unreachable_since: float | None = None
    lease_until: float | None = None
    progress: Progress = Progress()
    ended_at: float | None = None
    machine: RentedMachine = field(default_factory=RentedMachine)
    ending: Ending = field(default_factory=Ending)
    watching: Watching = field(default_factory=Watching)
    collection: Collection = field(default_factory=Collection)
    requests: Requests = field(default_factory=Requests)
    fetching: Fetching = field(default_factory=Fetching)
    model: SavedModel = field(default_factory=SavedModel)
    funding: Funding = field(default_factory=Funding)
    setbacks: Setbacks = field(default_factory=Setbacks)
    unread: Mapping[str, Any] = field(default_factory=dict)  # written by newer code: kept unchanged

    @property
    def id(self) -> str:
        return self.spec.id

    def times_asked(self, request: Request) -> int:
        """How often the user has requested this so far."""
        return self.saves_asked if request is Request.SAVE else self.samples_asked

    @property
    def has_model_of_attempt(self) -> bool:
        """Whether the model of the current attempt is saved off the machine."""
        return self.model.attempt == self.attempt

    @property
    def _paid_until_of_job(self) -> float | None:
        """When the job's own money is used up; credits are held for each attempt anew."""
        return self.funding.paid_until if self.funding.hold is None else None

    def next_attempt(self) -> Job:
        """The job in a further attempt, which keeps only what was saved from the last machine."""
        return replace(
            self,
            attempt=self.attempt + 1,
            machine=RentedMachine(),
            ending=Ending(),
            watching=Watching(
                milestone=self.watching.milestone,
                heartbeats=self.watching.heartbeats,
                recorded=self.watching.recorded,
                thinned=self.watching.thinned,
            ),
            collection=Collection(checkpoints=self.collection.checkpoints),
            requests=Requests(),
            fetching=Fetching(),
            model=replace(self.model, delivery=None),
            funding=Funding(hard_limit_at=self.funding.hard_limit_at, paid_until=self._paid_until_of_job),
            setbacks=Setbacks(),
            unread={},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job, written in the same transaction as the change itself."""

    seq: int
    job_id: str
    job_version: int
    kind: str
    payload: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A problem that a user or an operator should look at."""

    kind: str
    message: str
    job_id: str | None = None
    at: float = 0.0
