"""The values that can be read from a training log, shared by every parser family."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum


class Phase(StrEnum):
    """What the training process is doing."""

    LOADING = "loading"  # models, downloads, datasets
    CACHING = "caching"  # latents and text embeddings written ahead of training
    TRAINING = "training"
    SAMPLING = "sampling"  # drawing preview images
    EVALUATING = "evaluating"
    SAVING = "saving"
    FINISHED = "finished"
    FAILED = "failed"


class Scope(StrEnum):
    """What the step counter counts."""

    RUN = "run"  # one counter from start to end
    EPOCH = "epoch"  # it starts again with every epoch


class ErrorKind(StrEnum):
    """Why something went wrong, as far as the text shows."""

    OOM = "oom"
    CUDA = "cuda"
    NCCL = "nccl"
    DISK_FULL = "disk_full"
    KILLED = "killed"
    AUTH = "auth"
    MISSING_FILE = "missing_file"
    CONFIG = "config"
    NAN_LOSS = "nan_loss"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingError:
    """One distinct problem, however often and by however many ranks it was printed."""

    kind: ErrorKind
    message: str
    fatal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The values in one piece of the log; None where there is none.

    Progress redraws that arrive together may be thinned to the last one; errors and checkpoints never are.
    """

    at: float | None = None
    step: int | None = None
    total_steps: int | None = None
    scope: Scope | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    learning_rate: float | None = None
    steps_per_second: float | None = None
    eta_seconds: float | None = None
    phase: Phase | None = None
    error: TrainingError | None = None
    checkpoint: str | None = None

    def progress(self) -> tuple[object, ...]:
        """All but the time, the error and the checkpoint."""
        return (
            self.step,
            self.total_steps,
            self.scope,
            self.epoch,
            self.total_epochs,
            self.loss,
            self.learning_rate,
            self.steps_per_second,
            self.eta_seconds,
            self.phase,
        )

    def is_empty(self) -> bool:
        if self.step is not None or self.loss is not None or self.phase is not None:
            return False
        return self.error is None and self.checkpoint is None and self.progress() == _NO_PROGRESS


_NO_PROGRESS = Reading().progress()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the log shows so far."""

    framework: str | None
    step: int | None
    total_steps: int | None
    step_scope: Scope | None
    epoch: float | None
    total_epochs: int | None
    loss: float | None
    learning_rate: float | None
    steps_per_second: float | None
    eta_seconds: float | None
    phase: Phase | None
    errors: tuple[TrainingError, ...]
    checkpoints: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """The documented fields of `stationmaster parse --json`."""
        document: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        document["errors"] = [
            {"kind": error.kind.value, "message": error.message, "fatal": error.fatal} for error in self.errors
        ]
        document["checkpoints"] = list(self.checkpoints)
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error in one line, before repetitions and follow-up errors are removed."""

    kind: ErrorKind
    message: str
    fatal: bool
    launcher: bool = False  # a wrapper reports that its child failed: confirms an earlier cause, is seldom one itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A checkpoint that the text names."""

    name: str
    done: bool  # "saved", not only "saving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The values in one line or bar, as a family reads them; Memory decides what they change."""

    step: int | None = None
    total: int | None = None
    scope: Scope | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None  # may be nan or inf: then a problem, not a value
    loss_is_epoch_mean: bool = False
    loss_is_part: bool = False  # one of several terms: ignored once the whole is known
    broken_gradient: bool = False
    rate: float | None = None  # steps per second
    eta_seconds: float | None = None
    learning_rate: float | None = None
    phase: Phase | None = None
    announces: Phase | None = None  # unnamed bars that follow belong to this
    starts_training: bool = False  # a header: what came before was another run
    header_total: int | None = None
    skipped: int | None = None  # steps that a resumed run does not count in its bar
    finished: bool = False
    evidence: str = ""  # text quoted in a nan_loss error
    saved: Saved | None = None
    fault: Fault | None = None


def any_of(*patterns: str) -> re.Pattern[str]:
    """A pattern that matches where one of these does, in any case."""
    return re.compile("|".join(patterns), re.IGNORECASE)
