"""A job: what is asked for, where it is, how it ended, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from stationmaster.model.words import OpenEnum
from stationmaster.money import MicroDollars

SINGLE_USER = "me"
"""The person of the settings: owner of every job that names no other."""


class State(OpenEnum):
    """Where a job is."""

    QUEUED = "QUEUED"  # accepted, validated, price quoted; nothing rented
    PROVISIONING = "PROVISIONING"  # an attempt with a unique label exists; the provider may be billing
    TRANSFERRING_DATA = "TRANSFERRING_DATA"  # the machine is ours and healthy; the dataset is on its way
    EXECUTING = "EXECUTING"  # trackside runs the plan's steps, detached
    FETCHING_RESULTS = "FETCHING_RESULTS"  # training is over; its files are brought to safety
    FINALIZING = "FINALIZING"  # the model is safe; it is published and catalogued
    RELEASING = "RELEASING"  # nothing more is wanted from the machine; asked to go until it is gone
    ENDED = "ENDED"  # every rental is confirmed gone; `outcome` and `reason` say how it went


class Outcome(OpenEnum):
    """How a job ended."""

    COMPLETED = "COMPLETED"
    INCOMPLETE = "INCOMPLETE"  # ended early, the best checkpoint kept
    FAILED = "FAILED"
    FAILED_PROVISIONING = "FAILED_PROVISIONING"  # no machine could be had
    CANCELLED = "CANCELLED"


class Reason(OpenEnum):
    """Why a job ended, or why an attempt was given up. `lifecycle.REASONS` says what follows from each."""

    FINISHED = "FINISHED"
    STOPPED_BY_USER = "STOPPED_BY_USER"
    CANCELLED_BY_USER = "CANCELLED_BY_USER"
    STALLED = "STALLED"
    ANOMALY = "ANOMALY"  # a rule whose reaction is to stop found something, as NaN losses
    HARD_LIMIT = "HARD_LIMIT"
    STEP_FAILED = "STEP_FAILED"
    NO_MODEL = "NO_MODEL"
    NO_OFFER = "NO_OFFER"
    ACCESS_REFUSED = "ACCESS_REFUSED"
    NO_PROVIDER_CREDIT = "NO_PROVIDER_CREDIT"
    MACHINE_NOT_READY = "MACHINE_NOT_READY"
    PREFLIGHT_FAILED = "PREFLIGHT_FAILED"
    TRANSFER_FAILED = "TRANSFER_FAILED"
    MACHINE_LOST = "MACHINE_LOST"
    MACHINE_STOPPED = "MACHINE_STOPPED"
    OUTBID = "OUTBID"
    OUT_OF_CREDIT = "OUT_OF_CREDIT"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class Desired(StrEnum):
    """What the person wants of a job; faces write only this."""

    RUN = "RUN"
    STOP = "STOP"  # save, deliver, end INCOMPLETE
    CANCEL = "CANCEL"  # release at once and discard
    CANCEL_KEEP = "CANCEL_KEEP"  # pull the best checkpoint first, then as CANCEL


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRef:
    """A packed dataset at home."""

    source: str
    archive: str
    sha256: str
    size: int
    images: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Hours and price of a job before it starts."""

    hours_low: float
    hours_expected: float
    hours_high: float
    price_per_hour: MicroDollars
    cost_low: MicroDollars
    cost_expected: MicroDollars
    cost_high: MicroDollars
    gpu: str | None = None  # on which these hours are
    past_runs: int = 0  # by how many runs like it the hours were corrected
    reference_hours: float | None = None  # on an RTX 4090, so that other offers can be compared
    fixed_hours: float = 0.0  # those of them that are the same on every GPU
    disk_gib: float = 0.0  # that was asked for; the price includes what is rented
    traffic_gib: float = 0.0  # that the price includes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What a person asked for; never changes."""

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
    resume_from: str | None = None  # a verified checkpoint at home
    resume_step: int | None = None  # the training step at which it was made
    resume_state: str | None = None  # what the trainer reads beside it, at home


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the training is, as last read."""

    step: int | None = None
    total_steps: int | None = None
    epoch: float | None = None
    loss: float | None = None
    first_loss: float | None = None
    learning_rate: float | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    phase: str | None = None
    active_step: str | None = None
    at: float | None = None


class Request(StrEnum):
    """What a person may ask a running training for; it goes on afterwards."""

    SAVE = "save"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it stands. `memory` is the state handlers' own; everybody else leaves it alone."""

    spec: JobSpec
    created_at: float
    state: State
    state_since: float
    version: int = 0
    desired: Desired = Desired.RUN
    desired_seq: int = 0
    seen_seq: int = 0
    saves_asked: int = 0  # how often a person has asked for a checkpoint
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
    memory: Mapping[str, Any] = field(default_factory=dict)
    ended_at: float | None = None

    @property
    def id(self) -> str:
        return self.spec.id

    def times_asked(self, request: Request) -> int:
        """How often a person has asked for this so far."""
        return self.saves_asked if request is Request.SAVE else self.samples_asked

    def remember(self, **facts: Any) -> Job:
        """The same job with facts added to its memory; None forgets one."""
        merged = {**self.memory, **facts}
        return replace(self, memory={key: value for key, value in merged.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a job, told in the same transaction as the change itself."""

    seq: int
    job_id: str
    job_version: int
    kind: str
    payload: Mapping[str, Any]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something a person should look at."""

    kind: str
    message: str
    job_id: str | None = None
    at: float = 0.0
