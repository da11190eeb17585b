"""What workers know about a job's current attempt, in parts by subject.

The store keeps all parts of a job in one flat JSON object (column `memory`): a field is stored under its own name
unless `key` gives another one, and is left out at its default. So keys and defaults here are a stored format: rows
written by other versions have them too.
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
"""JSON that only the code that wrote it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Progress of a transfer to or from the machine; rate and time left are None while unknown."""

    way: str  # sending, fetching
    bytes: int
    total: int
    bytes_per_second: float | None = None
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """The recipe's cleanup of the machine: when it started, and its result once it is over."""

    since: float
    state: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedMachine:
    """The machine of this attempt: how to reach it, and what was tried with it."""

    label: str | None = None  # of its rental; like `access`, known after the first login
    access: Access | None = None
    gpus: str | None = None  # as the offer named them
    key_attached: bool = False
    login_problem: str | None = None
    refused_offers: tuple[str, ...] = ()
    waits_for: str | None = None  # why it is not its turn yet
    starting: str | None = None  # what its provider reported last while it started, such as the pull of its image
    absences: int = 0  # consecutive listings of the provider that lacked it
    gone_read_at: float | None = None  # when a read of this machine alone first found it gone
    starts: int = 0  # how often it was started again after it had stopped
    started_at: float | None = None
    transfer: Transfer | None = None  # while one is running
    fault: str | None = None  # what it sent that cannot be true, once that is no accident: the machine is avoided then
    cleanup: Cleanup | None = None
    unwritable: str | None = None  # why nothing can be written there, as after a training that filled the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """How much of the closing time is used up, how long the machine was stopped, and when that was last counted."""

    spent: float
    at: float
    stopped: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """Since when and why the machine is stopped with its model on it; `seq` is the user's last wish known then."""

    at: float
    why: str
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSave:
    """The checkpoint requested from the training before it is stopped."""

    state: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why the training ends, and how far that is."""

    reason: Reason | None = field(default=None, metadata={"key": "ending"})
    explanation: str | None = field(default=None, metadata={"key": "ending_explanation"})
    save: LastSave | None = None
    stops: int = 0  # how often the training was asked to stop
    unstopped: bool = False  # the stop had no effect: it may still run
    closing: Closing | None = None
    parked: Parked | None = None
    further: Reason | None = None  # why this attempt was left for a further one
    further_explanation: str | None = None
    analysed: bool = False  # its training was analysed, or could not be


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """How far the plan was when its machine answered."""

    at: float
    step: str | None = None  # of the plan
    percent: float | None = None  # of the training
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What was read from the running training so far, and which events were written about it."""

    since: Opaque | None = None  # how far its log is read
    reader: Opaque | None = None
    watch: Opaque | None = None
    signs: Opaque | None = None
    vitals: Opaque | None = None
    error_step: int | None = None  # the plan's step whose log had the last error
    anomalies: tuple[str, ...] = ()  # those already reported
    spoilt_at: int | None = None  # the training step since which the loss is NaN
    stalled: bool = False  # a stall has lasted longer than its grace period
    sick: bool = False  # an anomaly was found whose reaction is to stop
    health_ok: bool | None = None  # last result of the recipe's own check; True while there is none
    compared: int = 0  # percent of the run at which it was last compared with past ones
    milestone: int = 0  # percent
    epoch_event_step: int = field(default=0, metadata={"key": "epoch_told_at"})  # training step of the last epoch event
    trained: bool = False  # the training step has started
    steps: Mapping[str, str] | None = None  # of the plan: state and try by name; None before the first look
    outputs: Mapping[str, tuple[int, float]] | None = None  # checkpoints on the machine: size and mtime by path
    step_offset: int | None = None  # added to the trainer's own step numbers
    recorded: Mapping[str, int] = field(default_factory=dict)  # rows of all attempts, by kind: readings, events …
    thinned: tuple[str, ...] = ()  # of which kinds the rest is left out; each is reported once
    heartbeats: tuple[Heartbeat, ...] = ()  # of all attempts, oldest first, the older ones thinned

    @property
    def gpu_peak_gib(self) -> tuple[float, float] | None:
        """The highest memory use of the fullest GPU so far and that GPU's size; None if it was not measured, or if the
        GPU shares the system's memory. The vital signs keep it as `control/states/executing/memory_peaks.py` writes it.
        """
        memory = (self.vitals or {}).get("memory", {})
        if "gpu" not in memory or memory.get("platform") in ("unified", "cpu"):
            return None
        used, size, _ = memory["gpu"]
        return float(used), float(size)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerState:
    """The local copy of what a trainer needs beside a checkpoint to continue from it."""

    location: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A checkpoint that was downloaded and verified; `size` and `mtime` are those it had on the machine."""

    attempt: int
    path: str
    size: int
    mtime: float
    sha256: str
    location: str
    verified_at: float
    step: int | None = None
    has_nan: bool = False
    mirrored: bool = False  # also in the bucket
    state: TrainerState | None = None  # of the same step

    def is_of(self, attempt: int, file: OutputFile) -> bool:
        return (self.attempt, self.path, self.size, self.mtime) == (attempt, file.path, file.size, file.mtime)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The checkpoints downloaded while the training ran, oldest first, and when the next one is due."""

    checkpoints: tuple[Collected, ...] = field(default=(), metadata={"key": "collected"})
    at: float | None = field(default=None, metadata={"key": "collected_at"})
    failed: bool = field(default=False, metadata={"key": "collect_failed"})
    newest_until: float | None = field(
        default=None, metadata={"key": "collect_newest_until"}
    )  # a user requested the newest one
    samples_at: float | None = None  # when samples were last downloaded
    newest_sample: tuple[float, str] | None = None  # time and path, on the machine, of the newest that was tried
    sample_bytes: int = 0  # downloaded while the training ran


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRequest:
    """A user's request that was passed on to the training and is not fulfilled yet."""

    request: Request
    number: int
    at: float
    attempt: int
    looked_at: float
    made_at_step: int | None = None  # the training step at which the first result appeared


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What users requested from the running training."""

    pending: PendingRequest | None = field(default=None, metadata={"key": "asking"})
    answered: Mapping[str, int] = field(default_factory=dict)  # number of the last fulfilled one, by request


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """Which files are still to be downloaded from the machine."""

    wanted: tuple[OutputFile, ...] | None = None  # None: not listed yet
    spare_models: tuple[OutputFile, ...] = ()  # tried in this order if the best one is broken
    further_checkpoints: tuple[OutputFile, ...] = ()  # beside the model, downloaded last
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


CATALOGUED, REGISTERED = "catalogued", "registered"
"""Steps of a delivery, once they are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDelivery:
    """Progress of the delivery of an attempt's model: where it is, and what was tried, done and given up."""

    attempt: int
    places: tuple[Place, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)  # error by link or step
    tries: Mapping[str, int] = field(default_factory=dict)  # by link or step
    done: tuple[str, ...] = ()
    register: bool | None = None  # whether the model is to be registered; None before it is in the catalogue
    samples: tuple[ShownSample, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the model is in the catalogue and, if it is to be, was registered or that was tried."""
        return CATALOGUED in self.done and (not self.register or REGISTERED in self.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedModel:
    """The model that was saved off the machine, of this attempt or an earlier one."""

    address: str | None = field(default=None, metadata={"key": "model"})  # a path, hf://… or s3://…
    step: int | None = field(default=None, metadata={"key": "model_step"})
    attempt: int | None = field(default=None, metadata={"key": "model_attempt"})
    file: ModelFile | None = field(default=None, metadata={"key": "model_file"})
    delivery: ModelDelivery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Funding:
    """What the attempt may cost."""

    hold: MicroDollars | None = None  # credits set aside for it
    rate_per_hour: MicroDollars | None = None  # of its machine
    paid_until: float | None = None  # when the money that it may cost is used up at that rate
    hard_limit_at: float | None = None  # the job's own limit, if the credits run out before it


@dataclass(frozen=True, slots=True, kw_only=True)
class Setbacks:
    """Consecutive failures; reset when something works again."""

    failures: int = 0
    problem: str | None = field(default=None, metadata={"key": "setback"})  # the last of these failures
    faults: int = 0  # answers or files of the machine that cannot be true; a good status resets them
    internal_errors: int = field(default=0, metadata={"key": "trips"})  # errors in our own code
