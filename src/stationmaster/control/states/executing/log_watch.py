"""Reads the new part of a log: readings, progress, and with the samples whether the training has stalled. Pure.

The state of the log reader and the stall watch is kept with the job between visits, so another worker can continue.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stationmaster.control.states.executing.machine_moments import gpu_count, machine_moments
from stationmaster.model import Job, Progress, StepReading, Watching
from stationmaster.model.copying import changed
from stationmaster.parsers.base import ErrorKind, Reading, Summary
from stationmaster.parsers.budget import Budget
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.pieces import is_binary
from stationmaster.parsers.reader import LogReader
from stationmaster.parsers.registry import names_beginning_epoch
from stationmaster.remote.status import LogPiece, Since, Status
from stationmaster.settings import MonitoringSettings
from stationmaster.watch.escalation import StallEvent
from stationmaster.watch.log_moment import log_moment
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.signs import SignsOfLife
from stationmaster.watch.watcher import StallWatch

_GRAIN_SECONDS = 30.0  # the machine's default
_GRAINS_PER_WINDOW = 20
_REDRAWS = re.compile(rb"(?=\r)")
_MOST_FINE_REDRAWS = 64
_MOST_TIMES = 500
_SLICE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """What one status shows of the training itself."""

    watching: Watching  # for the next visit
    progress: Progress
    log_readings: tuple[Reading, ...]
    readings: tuple[StepReading, ...]
    event: StallEvent | None = None
    again_in: float | None = None  # seconds until the stall watch wants to look again, if that is soon
    names_beginning_epoch: bool = False
    is_measured: bool = False  # enough was seen for conclusions from the ETA
    is_thinned: bool = False  # the log was too dense to read all of it


def read_log(
    job: Job,
    status: Status,
    *,
    framework: str,
    monitoring: MonitoringSettings,
    now: float,
    patterns: Sequence[UserPattern] = (),
) -> ReadLog:
    """Read the new log of `status` and look once at the training, by the machine's own clock."""
    reader = _reader(job, framework, patterns)
    watch, signs = _watch(job, monitoring)
    readings: list[Reading] = []
    training = _training_streams(status)
    error_step, budget = job.watching.error_step, Budget()
    for piece in status.log:
        parts = _timed(piece, wall=written_at(piece, status), finely=job.progress.first_loss is None)
        for at, part in _while_in_budget(parts, budget):
            found = reader.feed(part, at=now - (status.wall - at), budget=budget)
            if any(reading.error for reading in found):
                error_step = _step_index(piece)
            if piece.stream in training:
                watch.observe(log_moment(found, at=at, moved=_moved(signs, part)))
                found = [_with_speed(reading, watch.steps_per_second) for reading in found]
            readings += found
    watch.gpus = gpu_count(status.series, known=watch.gpus)
    for moment in machine_moments(status.series, gpus=watch.gpus):
        watch.observe_machine(moment)
    look = watch.look(status.wall) if status.training_alive else None
    readings = [_shifted(reading, _offset(job)) for reading in readings]
    return ReadLog(
        watching=changed(
            job.watching, reader=reader.state(), watch=watch.state(), signs=signs.state(), error_step=error_step
        ),
        progress=_progress(job.progress, reader, watch, readings, status, now=now, offset=_offset(job)),
        log_readings=tuple(readings),
        readings=_step_readings(job, readings, now=now),
        event=look.event if look else None,
        again_in=look.again_in if look else None,
        names_beginning_epoch=names_beginning_epoch(reader.summary().framework),
        is_measured=watch.is_measured,
        is_thinned=budget.is_thinned,
    )


def _reader(job: Job, framework: str, patterns: Sequence[UserPattern]) -> LogReader:
    if job.watching.reader is not None:
        return LogReader.restore(job.watching.reader)
    return LogReader(framework=framework, total_steps=_configured_steps(job), patterns=patterns)


def _configured_steps(job: Job) -> int | None:
    """The number of steps that the trainer itself will count."""
    steps = job.spec.parameters.get("steps")
    return max(1, steps - _offset(job)) if isinstance(steps, int) else None


def _offset(job: Job) -> int:
    """The step that a resumed trainer started from if it counts from 0 again; reader and watch see its own count."""
    return job.watching.step_offset or 0


def _shifted(reading: Reading, offset: int) -> Reading:
    if not offset or reading.step is None:
        return reading
    total = None if reading.total_steps is None else reading.total_steps + offset
    return changed(reading, step=reading.step + offset, total_steps=total)


def _with_speed(reading: Reading, measured: float | None) -> Reading:
    """A step without a printed speed gets the measured one."""
    if reading.step is None or reading.steps_per_second is not None:
        return reading
    return changed(reading, steps_per_second=measured)


def _watch(job: Job, monitoring: MonitoringSettings) -> tuple[StallWatch, SignsOfLife]:
    policy, steps = stall_policy(monitoring), _configured_steps(job)
    known = job.watching
    if known.watch is None or known.signs is None:
        return StallWatch(policy, total_steps=steps), SignsOfLife()
    return StallWatch.restore(known.watch, policy, total_steps=steps), SignsOfLife.restore(known.signs)


def stall_policy(monitoring: MonitoringSettings) -> StallPolicy:
    """The detector's thresholds from the settings or the job's own monitoring block."""
    stall = monitoring.stall_detection
    policy = StallPolicy(
        enabled=stall.enabled,
        terminate=stall.terminate,
        grace=monitoring.grace_period,
        min_samples=stall.min_samples,
        eta_convergence_threshold=stall.eta_convergence_threshold,
        speed_drop_threshold=stall.speed_drop_threshold,
    )
    return policy.changed(stall.thresholds)


def since_of(job: Job, monitoring: MonitoringSettings) -> Since:
    """How far the job's log was read. A watch with a short window also needs finer timestamps for the rest."""
    read = Since.from_json(job.watching.since)
    if not monitoring.stall_detection.thresholds:
        return read
    return changed(read, grain_seconds=min(_GRAIN_SECONDS, stall_policy(monitoring).min_window / _GRAINS_PER_WINDOW))


def _training_streams(status: Status) -> frozenset[str]:
    return frozenset(f"{step.index}.{step.try_number}" for step in status.steps if step.training)


def _step_index(piece: LogPiece) -> int | None:
    """The index of the step whose log the piece belongs to."""
    index = piece.stream.partition(".")[0]
    return int(index) if index.isdecimal() else None


def written_at(piece: LogPiece, status: Status) -> float:
    """When the end of the piece was written: just now, unless more of the log is still to come."""
    return piece.times[-1][1] if status.more and piece.times else status.wall


def _timed(piece: LogPiece, *, wall: float, finely: bool) -> Iterator[tuple[float, bytes]]:
    """The piece's text with the times at which its parts were written, by the machine's clock.

    After a lost connection much comes at once; judged by its arrival it would look like a burst after a hang. The
    reader thins what it gets at once, so until the first loss is known some redraws are fed one by one: the last loss
    is compared with it.
    """
    begin, redraws_left = 0, _MOST_FINE_REDRAWS if finely else 0
    for place, at in (*_times(piece), (len(piece.data), wall)):
        text = piece.data[begin:place]
        begin = max(begin, place)
        for part in _REDRAWS.split(text, redraws_left) if redraws_left else (text,):
            if part:
                yield at, part
                redraws_left = max(0, redraws_left - 1)


def _times(piece: LogPiece) -> Sequence[tuple[int, float]]:
    """The times of the piece's parts; of more than any honest machine has, some."""
    return piece.times[:: 1 + len(piece.times) // _MOST_TIMES]


def _while_in_budget(parts: Iterator[tuple[float, bytes]], budget: Budget) -> Iterator[tuple[float, bytes]]:
    """The parts one by one; once the budget is spent, all the others as one: only its end is read."""
    for at, part in parts:
        if budget.is_spent():
            rest = [(at, part), *parts]
            yield rest[-1][0], b"".join(part for _, part in rest)
            return
        yield at, part


def _moved(signs: SignsOfLife, part: bytes) -> bool:
    """Whether the part has a sign of life; taken in slices, because decoding holds all other threads."""
    slices = (part[start : start + _SLICE_BYTES] for start in range(0, len(part), _SLICE_BYTES))
    moved = [signs.feed(_decoded(text)) for text in slices]
    return any(moved)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1" if is_binary(text) else "utf-8", "replace")


def _progress(
    before: Progress,
    reader: LogReader,
    watch: StallWatch,
    readings: Sequence[Reading],
    status: Status,
    *,
    now: float,
    offset: int,
) -> Progress:
    """What the log shows so far. A speed and an ETA that it does not print are measured by the times of the steps."""
    read = reader.summary()
    step = None if read.step is None else read.step + offset
    losses = (reading.loss for reading in readings if reading.loss is not None)
    active = next((step.name for step in status.steps if step.state == "running"), None)
    return changed(
        before,
        step=step,
        total_steps=None if read.total_steps is None else read.total_steps + offset,
        epoch=read.epoch,
        loss=_last_loss(before, read, readings),
        first_loss=before.first_loss if before.first_loss is not None else next(losses, read.loss),
        learning_rate=read.learning_rate,
        steps_per_second=watch.steps_per_second if read.steps_per_second is None else read.steps_per_second,
        eta_seconds=watch.eta_seconds if read.eta_seconds is None else read.eta_seconds,
        phase=read.phase,
        phase_since=_phase_since(before, read.phase, readings, now=now),
        active_step=active,
        at=now if step != before.step else before.at,
    )


def _last_loss(before: Progress, read: Summary, readings: Sequence[Reading]) -> float | None:
    """The loss as last printed: nan where that was no number, which the reader reports as an error."""
    for reading in reversed(readings):
        if reading.loss is not None:
            return reading.loss
        if reading.error is not None and reading.error.kind is ErrorKind.NAN_LOSS:
            return math.nan
    was_nan = before.loss is not None and math.isnan(before.loss)
    return before.loss if was_nan and read.loss is None and read.step is not None else read.loss


def _phase_since(before: Progress, phase: str | None, readings: Iterable[Reading], *, now: float) -> float | None:
    """When the phase began: it may have been left and entered again since the last look."""
    known, since = before.phase, before.phase_since
    for reading in readings:
        if reading.phase is not None and reading.phase != known:
            known, since = reading.phase, reading.at
    if phase is None:
        return None
    return since if known == phase and since is not None else now


def _step_readings(job: Job, readings: Iterable[Reading], *, now: float) -> tuple[StepReading, ...]:
    """The last reading of each new step; every redraw repeats the step that was current before."""
    known = (None, job.progress.step)
    by_step = {reading.step: reading for reading in readings if reading.step is not None and reading.step not in known}
    return tuple(
        StepReading(
            attempt=job.attempt,
            at=reading.at if reading.at is not None else now,
            step=step,
            loss=reading.loss,
            learning_rate=reading.learning_rate,
            steps_per_second=reading.steps_per_second,
        )
        for step, reading in by_step.items()
    )
