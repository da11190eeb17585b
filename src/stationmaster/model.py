"""What the parts of Stationmaster say to each other: frozen values and enums, no behaviour beyond reading them.

Instants (`…_at`) are seconds since the epoch by the database's clock unless a comment says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from stationmaster.money import ZERO, MicroDollars, cost

SINGLE_USER = "me"
"""The person of the settings: owner of every job that names no other."""


class _OpenEnum(StrEnum):
    """Words of newer code can be read and shown; no table knows them, so nothing is done with them."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str) or not value:
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class State(_OpenEnum):
    """Where a job is."""

    QUEUED = "QUEUED"  # accepted, validated, price quoted; nothing rented
    PROVISIONING = "PROVISIONING"  # an attempt with a unique label exists; the provider may be billing
    TRANSFERRING_DATA = "TRANSFERRING_DATA"  # the machine is ours and healthy; the dataset is on its way
    EXECUTING = "EXECUTING"  # trackside runs the plan's steps, detached
    FETCHING_RESULTS = "FETCHING_RESULTS"  # training is over; its files are brought to safety
    FINALIZING = "FINALIZING"  # the model is safe; it is published and catalogued
    RELEASING = "RELEASING"  # nothing more is wanted from the machine; asked to go until it is gone
    ENDED = "ENDED"  # every rental is confirmed gone; `outcome` and `reason` say how it went


class Outcome(_OpenEnum):
    """How a job ended."""

    COMPLETED = "COMPLETED"
    INCOMPLETE = "INCOMPLETE"  # ended early, the best checkpoint kept
    FAILED = "FAILED"
    FAILED_PROVISIONING = "FAILED_PROVISIONING"  # no machine could be had
    CANCELLED = "CANCELLED"


class Reason(_OpenEnum):
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


class RentalState(StrEnum):
    """What we know of a rented machine."""

    REQUESTED = "REQUESTED"  # the intent is written; the provider may or may not know of it
    HELD = "HELD"  # the provider gave us a machine
    RELEASING = "RELEASING"  # to be destroyed, asked until gone
    GONE = "GONE"  # the provider itself says so


LIVE_RENTAL_STATES = (RentalState.REQUESTED, RentalState.HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAccess:
    """A machine that is a folder on this computer."""

    root: str
    job_root: str
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAccess:
    """A machine reached over SSH; `host_keys` are the pinned public keys, one OpenSSH line each."""

    host: str
    port: int
    user: str
    job_root: str
    key_path: str | None = None
    host_keys: tuple[str, ...] = ()
    use_config: bool = False
    unverified: bool = False  # nobody could say which host keys are the right ones: no secret goes there
    environment: tuple[tuple[str, str], ...] = ()  # of every command run there; others can read it: no secrets


Access = LocalAccess | SshAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a job needs of a machine."""

    gpus: int = 0
    vram_gib: float = 0.0
    disk_gib: float = 1.0
    cuda: float | None = None  # that the driver must support, at least
    max_price_per_hour: MicroDollars | None = None
    hours: float = 1.0  # of the whole job on an RTX 4090
    fixed_hours: float = 0.0  # those of them that no GPU makes shorter or longer
    image: str | None = None
    interruptible: bool = False  # a bid: cheaper, may be taken away
    traffic_gib: float = 0.0  # expected up and down together
    avoided_machines: frozenset[str] = frozenset()  # hosts that failed us lately


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something that can be rented now; `price_per_hour` is the whole of it, disk and expected traffic included."""

    id: str
    provider: str
    price_per_hour: MicroDollars
    gpu: str | None = None
    gpus: int = 0
    vram_gib: float = 0.0
    machine_id: str | None = None
    region: str | None = None
    reliability: float | None = None
    bid_per_hour: MicroDollars | None = None  # set where the offer is interruptible


class MachineStatus(StrEnum):
    CREATING = "CREATING"  # ordered, loading
    RUNNING = "RUNNING"  # the container runs, which is not yet a login
    STOPPED = "STOPPED"  # no GPU, but the disk is kept and bills
    FAILED = "FAILED"  # will never run
    OFFLINE = "OFFLINE"  # the provider lost contact to the host
    UNKNOWN = "UNKNOWN"  # a word that we do not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as its provider describes it."""

    provider_id: str
    label: str
    status: MachineStatus
    created_at: float  # by the provider's clock: only compared among machines of one provider
    accesses: tuple[Access, ...] = ()  # ways to reach it, the better one first; empty while there is none
    price_per_hour: MicroDollars = ZERO
    gpu: str | None = None
    gpus: int = 0
    machine_id: str | None = None
    interruptible: bool = False
    message: str | None = None  # the provider's own words: pull progress, or what went wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A provider's machines; only a complete listing of the right account can show that something is absent."""

    machines: tuple[Machine, ...]
    complete: bool
    account: str  # whom the provider took us for


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a provider billed for one machine, by its own account."""

    provider_id: str
    kind: str  # gpu, disk, traffic
    amount: MicroDollars
    started_at: float
    ended_at: float


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
class FinishedRun:
    """A training that ended well: what it was, where it ran, and how long its steps took together."""

    parameters: Mapping[str, Any]
    images: int
    gpu: str | None
    seconds: float


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
    account: str | None = None
    owner: str | None = None
    monitoring: Mapping[str, Any] = field(default_factory=dict)
    retry_of: str | None = None
    resume_from: str | None = None  # a verified checkpoint at home
    resume_step: int | None = None  # the training step at which it was made


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

    def remember(self, **facts: Any) -> Job:
        """The same job with facts added to its memory; None forgets one."""
        merged = {**self.memory, **facts}
        return replace(self, memory={key: value for key, value in merged.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rental:
    """One machine that may bill: written before it is asked for, GONE only by the provider's word."""

    label: str  # unique; a surplus machine's row carries `<label>#<provider id>`
    job_id: str
    attempt: int
    provider: str
    state: RentalState
    account: str | None = None
    provider_id: str | None = None
    offer: Offer | None = None
    surplus: bool = False
    requested_at: float = 0.0
    create_sent_at: float | None = None
    held_at: float | None = None
    release_asked_at: float | None = None
    stopped_at: float | None = None  # when the sweep stopped it, its model still on its disk
    absent_listings: int = 0
    gone_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """What one rental cost: estimated by rate and time until the provider's own charges are known."""

    rental_label: str
    job_id: str
    kind: str  # gpu, disk, traffic
    rate_per_hour: MicroDollars
    started_at: float
    ended_at: float | None
    amount: MicroDollars
    source: str  # estimate, provider

    def so_far(self, *, now: float) -> MicroDollars:
        """What it comes to by now: one that is open grows with time."""
        if self.ended_at is not None:
            return self.amount
        return cost(self.rate_per_hour, max(0.0, now - self.started_at))


class EntryKind(_OpenEnum):
    """What an entry of the ledger is."""

    GRANT = "GRANT"  # a gift
    TOP_UP = "TOP_UP"  # paid for
    REWARD = "REWARD"  # for the owner of a dataset or model, by the operator's policy
    ADJUSTMENT = "ADJUSTMENT"  # put right by an operator
    REFUND = "REFUND"  # of what a job was charged, by an operator
    HOLD = "HOLD"  # set aside when a job is claimed
    SETTLEMENT = "SETTLEMENT"  # the part of a hold that was charged
    RELEASE = "RELEASE"  # the part of a hold that came back
    EXPIRY = "EXPIRY"  # what nobody spent in time


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One movement of one person's credits; never changed. `balance` and `held` are what it adds to each."""

    seq: int
    user: str
    kind: EntryKind
    lot: str
    balance: MicroDollars
    held: MicroDollars
    job: str | None = None
    attempt: int | None = None
    part: int = 0
    key: str | None = None
    note: str = ""
    actor: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditLot:
    """Credits that came in together."""

    id: str
    user: str
    amount: MicroDollars
    remaining: MicroDollars
    expires_at: float | None
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditAccount:
    """What a person can spend, and what is held for their jobs."""

    user: str
    balance: MicroDollars = ZERO
    held: MicroDollars = ZERO
    lots: tuple[CreditLot, ...] = ()  # in the order in which they are spent


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
class LogChunk:
    """A piece of a step's log: raw byte offsets on the machine, text with redraws thinned."""

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
    """A file that the training made. `verified_at` is set once its hash was checked where it now lies."""

    attempt: int
    path: str  # on the machine, relative to the job root
    kind: str  # checkpoint, sample, log, metrics
    size: int
    step: int | None = None
    sha256: str | None = None
    location: str | None = None
    verified_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadMachine:
    """A host that failed us, to be avoided for a while."""

    provider: str
    machine_id: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a model's weights lie, verified there by size and SHA-256."""

    kind: str  # home, hub, bucket
    address: str  # a path, hf://owner/name/file or s3://bucket/key
    link: str | None = None  # where a person looks at it
    public: bool = False  # anybody may download it


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePicture:
    """A picture at home that shows what a model does, and the text it was made from."""

    path: str
    text: str


class Registering(_OpenEnum):
    """How far a model is with the service that makes pictures with it."""

    NO = "NO"  # nobody asked for it, or it cannot be: the note says why
    DUE = "DUE"  # to be asked for, or asked for again after a failure
    STARTED = "STARTED"  # the service is downloading it
    DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    state: Registering = Registering.NO
    note: str | None = None
    due_at: float | None = None
    tries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model in the catalogue: what it is, what it was made of, and where it can be had."""

    slug: str
    job_id: str
    name: str
    recipe: str
    file_name: str
    sha256: str
    size: int
    complete: bool
    created_at: float
    family: str | None = None
    trigger: str | None = None
    base_model: str | None = None
    dataset_sha256: str | None = None
    owner: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)  # parameters, steps, losses, how long it took
    places: tuple[Place, ...] = ()
    previews: tuple[SamplePicture, ...] = ()
    registration: Registration = Registration()

    def place(self, kind: str) -> Place | None:
        return next((place for place in self.places if place.kind == kind), None)

    def at(self, *places: Place) -> TrainedModel:
        """The same model with these places; each takes the place of one of its kind."""
        kept = [place for place in self.places if all(place.kind != other.kind for other in places)]
        return replace(self, places=(*kept, *places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something a person should look at."""

    kind: str
    message: str
    job_id: str | None = None
    at: float = 0.0


_LABEL = re.compile(r"sm-(?P<installation>[a-z0-9]{8})-(?P<job>[a-z0-9][a-z0-9-]*)-(?P<attempt>\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The name a rented machine carries, from which its job and attempt are found again.

    >>> str(Label(installation="ab12cd34", job="x-1", attempt=2)), Label.parse("sm-ab12cd34-x-1-2").job
    ('sm-ab12cd34-x-1-2', 'x-1')
    """

    installation: str
    job: str
    attempt: int

    def __str__(self) -> str:
        return f"sm-{self.installation}-{self.job}-{self.attempt}"

    @staticmethod
    def parse(text: str) -> Label | None:
        found = _LABEL.fullmatch(text)
        if found is None:
            return None
        return Label(installation=found["installation"], job=found["job"], attempt=int(found["attempt"]))
