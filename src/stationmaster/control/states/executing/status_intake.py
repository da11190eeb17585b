"""What one look at a running training tells: log, readings, checkpoints, progress, health, as it is written down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stationmaster.control.flow.step import recovered
from stationmaster.control.flow.world import Visit
from stationmaster.control.machine.sight import ANSWERING, Sighting
from stationmaster.control.results.declared_files import checkpoint_of
from stationmaster.control.states.executing.comparison import Comparison
from stationmaster.control.states.executing.health_news import HealthNews, health_news
from stationmaster.control.states.executing.log_watch import Watched, stall_alert, stall_cleared, stall_event, watch_log
from stationmaster.control.states.executing.training_events import (
    checkpoint_step,
    epoch_events,
    milestone_events,
    start_events,
)
from stationmaster.control.states.executing.vitals import Health, check_vitals
from stationmaster.model import Alert, Checkpoint, Job, LogChunk, Progress
from stationmaster.parsers.patterns import UserPattern
from stationmaster.recipes.commands import Stop as StopRules
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.host import LogPiece, OutputFile, Since, Status, StepStatus
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import NewEvent, Write

SOFT_LIMIT_FACTOR = 1.25


_SOFT_LIMIT_FLOOR_SECONDS = 300.0  # the estimate of a short job is dominated by things it does not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    visit: Visit
    status: Status | None
    problem: str | None = None
    sighting: Sighting = ANSWERING
    watched: bool = False
    comparison: Comparison | None = None
    framework: str = "auto"
    patterns: tuple[UserPattern, ...] = ()
    outputs: tuple[Output, ...] = ()
    stopping: StopRules = field(default_factory=StopRules)
    tries: Mapping[str, int] = field(default_factory=dict)  # how often each step may be tried


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learnt:
    """What a status says, each part judged by those who know about it."""

    watched: Watched
    checkpoints: tuple[Checkpoint, ...]
    vitals: Health
    health: HealthNews


def taken_in(seen: Seen) -> Write:
    """Everything new in the status, as it is written: log, readings, checkpoints, progress."""
    status = seen.status
    assert status is not None
    before = seen.visit.job
    monitoring = seen.visit.monitoring
    learnt = _learnt(seen, status, monitoring)
    watched, vitals, health = learnt.watched, learnt.vitals, learnt.health
    milestone, passed = milestone_events(before, watched.progress)
    epoch_told_at, epochs = epoch_events(before, watched.progress, names_beginning=watched.names_beginning_epoch)
    job = _with_news(seen, status, learnt, milestone=milestone, epoch_told_at=epoch_told_at)
    event = watched.event
    saved = checkpoint_step(job, seen.outputs)
    return Write(
        job=job,
        due_in=_next_look(seen, watched.progress, monitoring),
        logs=tuple(_chunk(before.attempt, piece) for piece in status.log if piece.data),
        readings=watched.readings,
        checkpoints=learnt.checkpoints,
        events=(
            *_step_events(before, status.steps, seen.tries),
            *start_events(before, status.steps),
            *passed,
            *epochs,
            *((stall_event(event, monitoring, checkpoint_step=saved),) if event else ()),
            *vitals.events(),
            *health.events,
        ),
        alerts=(
            *_soft_limit(seen),
            *(stall_alert(before, event, monitoring) if event else ()),
            *vitals.alerts(before),
            *health.alerts,
        ),
        cleared_alerts=(
            *stall_cleared(event),
            *health.cleared_alerts,
            *(("silence",) if before.unreachable_since is not None else ()),
        ),
    )


def _learnt(seen: Seen, status: Status, monitoring: MonitoringSettings) -> _Learnt:
    before, now = seen.visit.job, seen.visit.now
    watched = watch_log(
        before, status, framework=seen.framework, patterns=seen.patterns, monitoring=monitoring, now=now
    )
    checkpoints = _checkpoints(before, status.outputs, seen.outputs)
    vitals = check_vitals(
        before,
        status,
        progress=watched.progress,
        readings=watched.log_readings,
        checkpoints=checkpoints,
        unusual=seen.comparison.outliers if seen.comparison else (),
        monitoring=monitoring,
        now=now,
    )
    return _Learnt(watched=watched, checkpoints=checkpoints, vitals=vitals, health=health_news(before, status))


def _with_news(seen: Seen, status: Status, learnt: _Learnt, *, milestone: int, epoch_told_at: int) -> Job:
    """The job with what the next visit has to know."""
    before = seen.visit.job
    known, watched, vitals = before.watching, learnt.watched, learnt.vitals
    news = replace(
        watched.watching,
        vitals=vitals.kept,
        anomalies=vitals.told,
        spoilt_at=vitals.spoilt_at,
        health_ok=learnt.health.is_well,
        since=Since.from_json(known.since).after(status).to_json(),
        compared=seen.comparison.percent if seen.comparison else known.compared,
        stalled=known.stalled or watched.is_to_end,
        sick=known.sick or vitals.is_to_end,
        milestone=milestone,
        epoch_told_at=epoch_told_at,
        steps=_steps_seen(status),
        outputs={file.path: (file.size, file.mtime) for file in _models(status.outputs)},
    )
    machine = replace(before.machine, absences=0, gone_read_at=None, transfer=None)
    return replace(recovered(before), progress=watched.progress, watching=news, machine=machine)


def _soft_limit(seen: Seen) -> tuple[Alert, ...]:
    """Longer than expected is worth a word to people; only the hard limit ends anything."""
    job = seen.visit.job
    expected = job.spec.quote.hours_expected * 3600
    ran = seen.visit.now - job.state_since
    if ran <= max(expected * SOFT_LIMIT_FACTOR, _SOFT_LIMIT_FLOOR_SECONDS):
        return ()
    said = f"runs for {ran / 60:.0f} min, {expected / 60:.0f} were expected; it goes on until its hard limit"
    return (Alert(kind="soft_limit", job_id=job.id, message=said),)


def _next_look(seen: Seen, progress: Progress, monitoring: MonitoringSettings) -> float:
    """Often at first and near the end, where something happens; otherwise at the set pace."""
    if seen.watched:
        return monitoring.watch_interval
    age = seen.visit.now - seen.visit.job.state_since
    likely_end = progress.eta_seconds if progress.eta_seconds is not None else math.inf
    return min(monitoring.poll_interval, max(monitoring.watch_interval, min(age / 10, likely_end)))


def _chunk(attempt: int, piece: LogPiece) -> LogChunk:
    return LogChunk(attempt=attempt, stream=piece.stream, start=piece.start, end=piece.end, data=piece.data)


def _checkpoints(job: Job, files: Iterable[OutputFile], outputs: Sequence[Output]) -> tuple[Checkpoint, ...]:
    """Outputs that are new or have changed since they were last written down."""
    known = job.watching.outputs or {}
    changed = (file for file in _models(files) if known.get(file.path) != (file.size, file.mtime))
    return tuple(checkpoint_of(job, file, outputs) for file in changed)


def _models(files: Iterable[OutputFile]) -> Iterable[OutputFile]:
    """Samples and logs may be many; they are counted once, when they are fetched."""
    return (file for file in files if file.kind == OutputKind.CHECKPOINT)


def _steps_seen(status: Status) -> dict[str, str]:
    return {step.name: f"{step.state}.{step.try_number}" for step in status.steps if step.state != "pending"}


def _step_events(job: Job, steps: Iterable[StepStatus], tries: Mapping[str, int]) -> Iterable[NewEvent]:
    """A step's changes since the last look, each told once."""
    known = job.watching.steps or {}
    for step in steps:
        if step.state != "pending" and known.get(step.name) != f"{step.state}.{step.try_number}":
            payload = {"step": step.name, "state": step.state, "try": step.try_number, "exit_code": step.exit_code}
            yield NewEvent(kind="step", payload={**payload, "tries": tries.get(step.name)})
