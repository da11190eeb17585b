"""What was read from the log so far: small, bounded, and all that is needed to continue after a restart."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

from stationmaster.parsers.base import (
    ErrorKind,
    Fault,
    Parsed,
    Phase,
    Reading,
    Saved,
    Scope,
    Summary,
    TrainingError,
)

MAX_ERRORS = 50
MAX_CHECKPOINTS = 1_000
MAX_REMEMBERED_BARS = 24
MESSAGE_LIMIT = 400
_RECENT_CHECKPOINTS = 8

_LABEL = re.compile(r"(?:step|epoch|iter(?:ation)?)s?:? *(\d+)")
_NUMBERS = re.compile(r"\d+")

#: What other ranks and launchers print after one of them has failed.
_FALLOUT_KINDS = frozenset({ErrorKind.NCCL, ErrorKind.KILLED})
#: Phases that load their own models and continue afterwards.
_OWN_LOADING = frozenset({Phase.SAMPLING, Phase.EVALUATING, Phase.SAVING})


@dataclass(slots=True)
class KnownError:
    """An error and whether it stopped the run when it was printed."""

    kind: str
    message: str
    fatal: bool
    stopped: bool
    launcher: bool = False

    def key(self) -> str:
        return self.kind if self.kind == ErrorKind.NAN_LOSS else f"{self.kind} {_without_numbers(self.message)}"


@dataclass(slots=True)
class Memory:
    """The accumulated result and the context that later lines are read in."""

    configured_total: int | None = None
    family: str | None = None

    step: int | None = None
    total: int | None = None
    scope: str | None = None
    epoch: float | None = None
    total_epochs: int | None = None
    loss: float | None = None
    learning_rate: float | None = None
    rate: float | None = None
    eta_seconds: float | None = None
    phase: str | None = None
    errors: list[KnownError] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)

    # Context.
    header_total: int | None = None
    has_step_loss: bool = False
    has_whole_loss: bool = False  # of a step, not only of a part of the model
    step_epoch: float | None = None  # the epoch printed beside the last step
    step_restarts: bool = False
    has_epoch_lines: bool = False  # "Epoch 3/10" printed by a line or an outer bar: inner bars start again
    skipped: int = 0  # the steps before those of the bar, in a resumed run whose bar starts at 0
    announced: str | None = None  # what unnamed bars are about
    finished: bool = False  # the log announced it, or its bar is full
    fit_over: bool = False  # announced in words, not only by a full bar
    bar_identity: str | None = None
    bar_total: int | None = None
    bar_confirmed: bool = False  # something besides its shape shows that it is the training bar
    bar_was_full: bool = False
    loss_since_bar: bool = False
    before_bar: dict[str, object] | None = None  # values to go back to when the bar turns out to be another's
    bar_head: str = ""  # "Epoch 9: 100%" alone on a line: the bar is on the next one
    full_bars: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)  # of a table that is being printed
    in_metrics: bool = False  # in a block of end-of-run metrics
    in_epoch: bool = False  # Keras: between "Epoch 1/5" and the end of its line

    in_traceback: bool = False
    headed: bool = False  # an error was logged in the line just before a traceback
    traceback_prefix: str = ""  # what a wrapper puts before every line of its child
    background: bool = False  # the traceback is a thread's or a logger's, not the run's
    stopped_at: int | None = None  # step when a fatal error was printed
    is_stopped: bool = False  # a fatal error was printed and nothing has moved since
    saving_unconfirmed: bool = False

    def summary(self) -> Summary:
        has_counter = self.step is not None or self.total_steps() is not None
        return Summary(
            framework=self.family,
            step=self.step,
            total_steps=self.total_steps(),
            step_scope=Scope(self.scope or Scope.RUN) if has_counter else None,
            epoch=self.epoch,
            total_epochs=self.total_epochs,
            loss=self.loss,
            learning_rate=self.learning_rate,
            steps_per_second=self.rate,
            eta_seconds=self.eta_seconds,
            phase=Phase(self.phase) if self.phase else None,
            errors=tuple(_public(error) for error in self.errors),
            checkpoints=tuple(self.checkpoints),
        )

    def total_steps(self) -> int | None:
        return self.total if self.total is not None else self.header_total

    def is_in_block(self) -> bool:
        """Whether the next line may belong to a traceback, a table or a block of metrics, whatever it is."""
        return self.in_traceback or self.in_metrics or bool(self.columns)

    def clone(self) -> Memory:
        return dataclasses.replace(
            self,
            errors=[dataclasses.replace(error) for error in self.errors],
            checkpoints=list(self.checkpoints),
            full_bars=list(self.full_bars),
            columns=list(self.columns),
        )

    def apply(self, parsed: Parsed, at: float | None) -> list[Reading]:
        """Apply the values of a line or bar; returns the readings that result."""
        if parsed.starts_training:
            self._start_training()
        if parsed.skipped is not None:
            self.skipped = parsed.skipped
        if self.finished and parsed.step is None and _is_next_epoch(parsed, self.epoch):
            self.finished = self.fit_over = False  # what had ended was the training of one epoch
        self._take_progress(parsed)
        problems = self._take_problems(parsed)
        checkpoint = self._take_save(parsed.saved) if parsed.saved else None
        self._take_phase(parsed)
        loss = parsed.loss if parsed.loss is not None and math.isfinite(parsed.loss) else None
        reading = Reading(
            at=at,
            step=parsed.step,
            total_steps=self.total_steps() if parsed.step is not None or parsed.header_total is not None else None,
            scope=Scope(self.scope or Scope.RUN) if parsed.step is not None else None,
            epoch=parsed.epoch,
            total_epochs=parsed.total_epochs,
            loss=loss if self.loss == loss else None,
            learning_rate=parsed.learning_rate,
            steps_per_second=parsed.rate,
            eta_seconds=parsed.eta_seconds,
            phase=Phase(self.phase) if self.phase and _has_phase(parsed) else None,
            error=problems[0] if problems else None,
            checkpoint=checkpoint,
        )
        further = [Reading(at=at, error=problem) for problem in problems[1:]]
        return further if reading.is_empty() else [reading, *further]

    # Bars -----------------------------------------------------------------------------------------------------------

    def follow_bar(self, identity: str, total: int | None, *, confirmed: bool) -> None:
        """The bar with this identity is the training bar now."""
        if (identity, total) != (self.bar_identity, self.bar_total):
            self.before_bar = None if confirmed else self._counters()
            self.bar_confirmed = False
            self.bar_was_full = False
        self.bar_identity, self.bar_total = identity, total
        self.bar_confirmed = self.bar_confirmed or confirmed or self.loss_since_bar
        self.loss_since_bar = False

    def doubt_bar(self) -> None:
        """The full bar just drawn belonged to an evaluation, unless something had shown that it was the training's."""
        if self.bar_was_full:
            self.disown_bar()

    def disown_bar(self) -> None:
        """The bar was not the training's: go back to what was known before it, unless something had confirmed it."""
        if self.before_bar is not None and not self.bar_confirmed:
            for name, value in self.before_bar.items():
                setattr(self, name, value)
            self.before_bar = None
            self.bar_identity = self.bar_total = None

    def forget_counter(self, identity: str) -> None:
        """The bar that was taken for the training's counts epochs."""
        if self.bar_identity == identity:
            self.bar_identity = self.bar_total = self.before_bar = None
            self.step = self.total = self.scope = self.rate = self.eta_seconds = None

    def remember_full_bar(self, identity: str) -> None:
        if identity not in self.full_bars:
            self.full_bars = [*self.full_bars, identity][-MAX_REMEMBERED_BARS:]

    # Progress -------------------------------------------------------------------------------------------------------

    def _start_training(self) -> None:
        self.finished = self.fit_over = self.step_restarts = False
        self.bar_identity = self.bar_total = self.before_bar = None
        self.bar_confirmed = self.bar_was_full = self.loss_since_bar = False
        self.header_total = None
        self.skipped = 0
        if self.is_stopped:
            self.is_stopped = False

    def _take_progress(self, parsed: Parsed) -> None:
        if parsed.header_total is not None:
            self.header_total = parsed.header_total
            if self.step is None:
                self.total = None
        if parsed.step is not None:
            self._notice_movement(parsed)
            self._notice_restart(parsed)
            known_total = self._total_of_same(parsed) if parsed.total is None else None
            is_told_again = parsed.total is None and parsed.step == self.step
            self.step, self.total = parsed.step, parsed.total if parsed.total is not None else known_total
            self.scope = Scope.EPOCH if self.step_restarts else parsed.scope or self.scope or Scope.RUN
            continues = known_total is not None or is_told_again
            if not continues or parsed.rate is not None or parsed.eta_seconds is not None:
                self.rate, self.eta_seconds = parsed.rate, parsed.eta_seconds
        else:
            self.rate = self.rate if parsed.rate is None else parsed.rate
            self.eta_seconds = self.eta_seconds if parsed.eta_seconds is None else parsed.eta_seconds
        self.epoch = self.epoch if parsed.epoch is None else parsed.epoch
        self.total_epochs = self.total_epochs if parsed.total_epochs is None else parsed.total_epochs
        self.learning_rate = self.learning_rate if parsed.learning_rate is None else parsed.learning_rate
        self._take_loss(parsed)

    def _notice_restart(self, parsed: Parsed) -> None:
        """A counter without a total that goes back as the epoch goes forward counts within the epoch."""
        before, self.step_epoch = self.step_epoch, parsed.epoch
        if (
            parsed.total is not None
            or parsed.step is None
            or self.step is None
            or before is None
            or parsed.epoch is None
        ):
            return
        self.step_restarts = self.step_restarts or (parsed.epoch >= before + 1 and parsed.step <= self.step)

    def _total_of_same(self, parsed: Parsed) -> int | None:
        """The total printed before, when a line without one continues towards it."""
        if self.total is None or self.step is None or parsed.step is None or parsed.scope != self.scope:
            return None
        return self.total if self.step <= parsed.step <= self.total else None

    def _take_loss(self, parsed: Parsed) -> None:
        if parsed.loss is None or (parsed.loss_is_epoch_mean and self.has_step_loss):
            return
        if parsed.loss_is_part and self.has_whole_loss:
            return
        self.loss = parsed.loss if math.isfinite(parsed.loss) else None
        self.has_step_loss = self.has_step_loss or not parsed.loss_is_epoch_mean
        self.has_whole_loss = self.has_whole_loss or not (parsed.loss_is_epoch_mean or parsed.loss_is_part)

    def _notice_movement(self, parsed: Parsed) -> None:
        """A counter that moves after an error: the run went on, or it was started again."""
        if not self.is_stopped or parsed.step is None:
            return
        if self.stopped_at is None:
            self.stopped_at = parsed.step
        elif parsed.step > self.stopped_at:
            self._survive()
        elif parsed.step < self.stopped_at:
            self.is_stopped = False

    def _survive(self) -> None:
        for error in self.errors:
            error.fatal = False
        self.is_stopped = False

    # Problems -------------------------------------------------------------------------------------------------------

    def _take_problems(self, parsed: Parsed) -> list[TrainingError]:
        problems: list[Fault] = []
        if (parsed.loss is not None and not math.isfinite(parsed.loss)) or parsed.broken_gradient:
            problems.append(Fault(kind=ErrorKind.NAN_LOSS, message=parsed.evidence, fatal=False))
        if parsed.fault:
            problems.append(parsed.fault)
        return [error for fault in problems if (error := self._take_fault(fault))]

    def _take_fault(self, fault: Fault) -> TrainingError | None:
        """Add a problem once; what follows a fatal one is a consequence of it."""
        known = self._known(fault)
        if known is None and (self.is_stopped or len(self.errors) >= MAX_ERRORS):
            return None
        if known is None:
            known = _unknown(fault)
            self.errors.append(known)
            is_news = True
        else:
            is_news = fault.fatal and not known.fatal
            if is_news and not fault.launcher:
                known.kind, known.message = fault.kind, fault.message[:MESSAGE_LIMIT]
        if fault.fatal:
            known.fatal = known.stopped = True
            self._stop()
        return _public(known) if is_news else None

    def _known(self, fault: Fault) -> KnownError | None:
        """The error that this one repeats, explains or confirms."""
        if fault.launcher:
            return next((error for error in reversed(self.errors) if error.stopped), None)
        if self.is_stopped and self.errors:
            cause = self.errors[-1]
            if cause.kind == fault.kind and not cause.launcher:
                return cause
            if cause.launcher or (cause.kind == ErrorKind.OTHER and fault.kind not in _FALLOUT_KINDS):
                cause.launcher = fault.launcher
                cause.kind, cause.message = fault.kind, fault.message[:MESSAGE_LIMIT]
                return cause
            return None
        if self.headed and fault.fatal and self.errors:  # its heading only announced it
            self.headed = False
            return self.errors[-1]
        key = _unknown(fault).key()
        same = next((error for error in self.errors if error.key() == key), None)
        if same is None and fault.fatal and self.errors and self._just_skipped(fault):
            return self.errors[-1]
        return same

    def _just_skipped(self, fault: Fault) -> bool:
        """A problem that was survived a few times and then was not."""
        last = self.errors[-1]
        return last.kind == fault.kind and not last.fatal and fault.kind != ErrorKind.OTHER

    def _stop(self) -> None:
        if not self.is_stopped:
            self.stopped_at = self.step
        self.is_stopped = True
        self.finished = self.fit_over = False
        self.phase = Phase.FAILED

    # Saves and phases -----------------------------------------------------------------------------------------------

    def _take_save(self, saved: Saved) -> str | None:
        self.saving_unconfirmed = not saved.done
        if saved.name in self.checkpoints or self._is_part(saved.name.rstrip("/\\")):
            return None
        before = self.checkpoints[:-1] if self._names_label(saved.name) else self.checkpoints
        self.checkpoints = [*before, saved.name][-MAX_CHECKPOINTS:]
        return saved.name

    def _names_label(self, path: str) -> bool:
        """Whether a path is that of the checkpoint that was announced just before as `step 500`."""
        label = _LABEL.fullmatch(self.checkpoints[-1]) if self.checkpoints else None
        return label is not None and label[1] in _NUMBERS.findall(re.split(r"[/\\]", path.rstrip("/\\"))[-1])

    def _is_part(self, name: str) -> bool:
        """A file of a checkpoint folder that was named just before, or the folder once more."""
        recent = [known.rstrip("/\\") for known in self.checkpoints[-_RECENT_CHECKPOINTS:]]
        return any(name == known or name.startswith((known + "/", known + "\\")) for known in recent)

    def forget_failed_save(self) -> None:
        """A save that was announced and then ended in an error is no checkpoint."""
        if self.saving_unconfirmed and self.phase in (Phase.SAVING, Phase.FINISHED) and self.checkpoints:
            self.checkpoints = self.checkpoints[:-1]
        self.saving_unconfirmed = False

    def _take_phase(self, parsed: Parsed) -> None:
        if parsed.announces is not None:
            self.announced = parsed.announces
        if parsed.finished:
            if self.is_stopped and (parsed.step is None or not self._is_redraw(parsed)):
                self._survive()
            if not self.is_stopped:
                self.finished = True
                self.fit_over = self.fit_over or parsed.step is None
                self.phase = Phase.FINISHED
            return
        if self.is_stopped or parsed.phase is None:
            return
        if parsed.phase == Phase.TRAINING:
            self.announced = None
            self.finished = self.finished and (parsed.step is None or self._is_last_drawing(parsed))
        if parsed.phase in (Phase.LOADING, Phase.CACHING) and self._loads_on_the_way():
            return
        self.phase = (
            Phase.FINISHED if self.finished and parsed.phase in (Phase.SAVING, Phase.TRAINING) else parsed.phase
        )

    def _loads_on_the_way(self) -> bool:
        return self.finished or (self.step is not None and self.phase in _OWN_LOADING)

    def _is_last_drawing(self, parsed: Parsed) -> bool:
        """An epoch's bar is drawn once more after the trainer announced its end."""
        return self.fit_over and parsed.step is not None and parsed.total is not None and parsed.step >= parsed.total

    def _is_redraw(self, parsed: Parsed) -> bool:
        return parsed.step is not None and parsed.step == self.stopped_at

    def _counters(self) -> dict[str, object]:
        names = ("step", "total", "scope", "rate", "eta_seconds", "phase", "finished")
        return {name: getattr(self, name) for name in names}


def _is_next_epoch(parsed: Parsed, epoch: float | None) -> bool:
    """Whether a line announces the epoch after the last one, of a known number of epochs."""
    return None not in (parsed.epoch, parsed.total_epochs, epoch) and parsed.epoch == (epoch or 0) + 1


def _has_phase(parsed: Parsed) -> bool:
    return parsed.phase is not None or parsed.finished or (parsed.fault is not None and parsed.fault.fatal)


def _unknown(fault: Fault) -> KnownError:
    message = fault.message[:MESSAGE_LIMIT]
    return KnownError(kind=fault.kind, message=message, fatal=False, stopped=False, launcher=fault.launcher)


def _public(error: KnownError) -> TrainingError:
    return TrainingError(kind=ErrorKind(error.kind), message=error.message, fatal=error.fatal)


@lru_cache(maxsize=256)
def _without_numbers(message: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "#", message.lower())[:160]
