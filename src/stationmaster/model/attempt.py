"""What workers know of a job's current attempt, in parts by subject.

The store keeps all parts of a job in one flat JSON object, where a field has its own name unless `key` gives another;
a field at its default is left out. So names and defaults here are a format: rows of other versions have them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.model.catalogue import Place
from stationmaster.model.machines import Access
from stationmaster.model.states import Reason, Request
from stationmaster.model.training import OutputFile
from stationmaster.money import MicroDollars

Opaque = Mapping[str, Any]
"""JSON that only those who wrote it can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """How far a transfer to or from the machine is; rate and time left are None while nothing can be said."""

    way: str  # sending, fetching
    bytes: int
    total: int
    bytes_per_second: float | None = None
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """The recipe's cleanup of the machine: since when, and once it is over how it ended."""

    since: float
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedMachine:
    """The machine of this attempt: how it is reached, and what was tried with it."""

    label: str | None = None  # of its rental; known, as `access` is, after the first login
    access: Access | None = None
    gpus: str | None = None  # as the offer named them
    key_attached: bool = False
    login_problem: str | None = None
    refused_offers: tuple[str, ...] = ()
    absences: int = 0  # looks in a row at the provider's list that did not find it
    gone_read_at: float | None = None  # when a single read first said that it is gone
    starts: int = 0  # of a machine that was stopped
    started_at: float | None = None
    transfer: Transfer | None = None  # while one is under way
    cleanup: Cleanup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How much of the time to end is used up, for how long the machine was stopped, and when that was last counted."""

    spent: float
    at: float
    stopped: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Since when and why the machine is stopped with its model on it; `seq` is the wish that was known by then."""

    at: float
    why: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSave:
    """The checkpoint that a training was asked for before its stop."""

    state: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why the training ends, and how far its end is."""

    reason: Reason | None = field(default=None, metadata={"key": "ending"})
    explanation: str | None = field(default=None, metadata={"key": "ending_explanation"})
    save: LastSave | None = None
    stops: int = 0  # how often the training was asked to stop
    unstopped: bool = False  # it may still run: the stop had no effect
    closing: Closing | None = None
    parked: Parked | None = None
    further: Reason | None = None  # why this attempt was left for a further one
    further_explanation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What was read and told of the running training so far."""

    since: Opaque | None = None  # how far its log was read
    reader: Opaque | None = None
    watch: Opaque | None = None
    signs: Opaque | None = None
    vitals: Opaque | None = None
    error_step: int | None = None  # the plan's step in whose log the last error was
    anomalies: tuple[str, ...] = ()  # those that were told
    spoilt_at: int | None = None  # the training step from which on the loss is no number
    stalled: bool = False  # a stall has outlasted its grace
    sick: bool = False  # an anomaly whose reaction is to stop was found
    health_ok: bool | None = None  # what the recipe's own check said last, or True while it said nothing
    compared: int = 0  # percent of the run at which it was last compared with past ones
    milestone: int = 0  # percent
    epoch_event_step: int = field(default=0, metadata={"key": "epoch_told_at"})  # training step of the last epoch event
    steps: Mapping[str, str] | None = None  # of the plan: state and try by name; None before the first look
    outputs: Mapping[str, tuple[int, float]] | None = None  # checkpoints on the machine: size and mtime by path
    step_offset: int | None = None  # what is added to the steps that the trainer counts


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerState:
    """What a trainer reads beside a checkpoint to go on from it, at home."""

    location: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A checkpoint that lies at home, verified; `size` and `mtime` are those it had on the machine."""

    attempt: int
    path: str
    size: int
    mtime: float
    sha256: str
    location: str
    verified_at: float
    step: int | None = None
    has_nan: bool = False
    mirrored: bool = False  # it lies in the bucket as well
    state: TrainerState | None = None  # of that very step

    def is_of(self, attempt: int, file: OutputFile) -> bool:
        return (self.attempt, self.path, self.size, self.mtime) == (attempt, file.path, file.size, file.mtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The checkpoints that came home while the training ran, oldest first, and when the next one is due."""

    checkpoints: tuple[Collected, ...] = field(default=(), metadata={"key": "collected"})
    at: float | None = field(default=None, metadata={"key": "collected_at"})
    failed: bool = field(default=False, metadata={"key": "collect_failed"})
    newest_until: float | None = field(default=None, metadata={"key": "collect_newest_until"})  # a person asked for it


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """A person's request that was passed on to the training and is not answered yet."""

    request: Request
    number: int
    at: float
    attempt: int
    looked_at: float
    made_at_step: int | None = None  # the training step at which the first of what it asked for was there


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What people asked the running training for."""

    pending: PendingRequest | None = field(default=None, metadata={"key": "asking"})
    answered: Mapping[str, int] = field(default_factory=dict)  # the number of the last one, by request


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Which of the machine's files are still to be fetched."""

    wanted: tuple[OutputFile, ...] | None = None  # None: the machine was not asked yet
    spare_models: tuple[OutputFile, ...] = ()  # tried in this order if the best one does not open
    furthest: int | None = None  # the training step that the trainer's state belongs to


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The model as it was on the machine."""

    name: str
    sha256: str
    size: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSample:
    """A sample in the model's repository."""

    url: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDelivery:
    """How far the delivery of an attempt's model is: where it lies, and what was tried, done and given up."""

    attempt: int
    places: tuple[Place, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # the problem by link or step
    tries: Mapping[str, int] = field(default_factory=dict)  # by link or step
    done: tuple[str, ...] = ()
    register: bool | None = None  # whether the model is to be registered; None before it is in the catalogue
    samples: tuple[ShownSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedModel:
    """The model that is safe, of this attempt or an earlier one."""

    address: str | None = field(default=None, metadata={"key": "model"})  # a path, hf://… or s3://…
    step: int | None = field(default=None, metadata={"key": "model_step"})
    attempt: int | None = field(default=None, metadata={"key": "model_attempt"})
    file: ModelFile | None = field(default=None, metadata={"key": "model_file"})
    delivery: ModelDelivery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Funding:
    """What the attempt may cost."""

    hold: MicroDollars | None = None  # credits that are set aside for it
    hard_limit_at: float | None = None  # the job's own limit, where the credits end before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Setbacks:
    """What went wrong several times in a row; forgotten when it works again."""

    failures: int = 0
    internal_errors: int = field(default=0, metadata={"key": "trips"})  # errors in our own code
