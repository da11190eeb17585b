"""What is recorded of one look at a running training: log, readings, series, checkpoints, progress, news. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stationmaster.control.flow.world import Visit
from stationmaster.control.machine.sight import ANSWERING, Sighting
from stationmaster.control.results.declared_files import checkpoint_of
from stationmaster.control.states.executing.comparison import Comparison
from stationmaster.control.states.executing.dense_log import thinned_news
from stationmaster.control.states.executing.heartbeats import with_heartbeat
from stationmaster.control.states.executing.log_watch import ReadLog, read_log
from stationmaster.control.states.executing.thinning import thinned
from stationmaster.control.states.executing.training_events import (
    all_news,
    answer_news,
    disk_news,
    duration_news,
    epoch_news,
    health_news,
    milestone_news,
    stall_news,
    step_news,
)
from stationmaster.control.states.executing.vitals import vitals_news
from stationmaster.model import Checkpoint, Job, LogChunk, OutputFile, Watching
from stationmaster.model.copying import changed
from stationmaster.parsers.patterns import UserPattern
from stationmaster.recipes.commands import StopRules
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.status import LogPiece, Since, Status
from stationmaster.series.blocks import Block, block_of
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import Write


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutingView:
    visit: Visit
    status: Status | None
    problem: str | None = None
    is_false: bool = False  # the machine answered, and its answer cannot be true
    sighting: Sighting = ANSWERING
    watched: bool = False
    comparison: Comparison | None = None
    framework: str = "auto"
    patterns: tuple[UserPattern, ...] = ()
    outputs: tuple[Output, ...] = ()
    stopping: StopRules = field(default_factory=StopRules)
    tries: Mapping[str, int] = field(default_factory=dict)  # how often each step may be tried


def status_write(view: ExecutingView, status: Status) -> Write:
    """Everything new in the status, as it is recorded: log, readings, series, checkpoints, progress, news."""
    visit, before, monitoring = view.visit, view.visit.job, view.visit.monitoring
    log = read_log(
        before, status, framework=view.framework, patterns=view.patterns, monitoring=monitoring, now=visit.now
    )
    progress = log.progress
    checkpoints = _checkpoints(before, status.outputs, view.outputs)
    news = all_news(
        changed(before, watching=_with_read(log, status, now=visit.now)),
        (
            lambda job: duration_news(job, now=visit.now),
            lambda job: step_news(job, status.steps, view.tries),
            lambda job: milestone_news(job, progress),
            lambda job: epoch_news(job, progress, names_beginning=log.names_beginning_epoch),
            lambda job: stall_news(job, log.event, monitoring, view.outputs),
            lambda job: vitals_news(job, status, log, checkpoints, view.comparison, monitoring, now=visit.now),
            lambda job: health_news(job, status.health),
            lambda job: disk_news(job, status.unwritten),
            lambda job: thinned_news(job, is_thinned=log.is_thinned),
            answer_news,
        ),
    )
    return thinned(
        Write(
            job=changed(news.job, progress=progress),
            due_in=_next_look(view, log, monitoring),
            logs=tuple(_chunk(before.attempt, piece) for piece in status.log if piece.data),
            readings=log.readings,
            series=_series(before, status),
            checkpoints=checkpoints,
            events=news.events,
            alerts=news.alerts,
            cleared_alerts=news.cleared_alerts,
        )
    )


def _with_read(log: ReadLog, status: Status, *, now: float) -> Watching:
    """With how far the log and the series were read, the checkpoints that exist, and a heartbeat."""
    watching = log.watching
    since = Since.from_json(watching.since).after(status).to_json()
    outputs = {file.path: (file.size, file.mtime) for file in _models(status.outputs)}
    heartbeats = with_heartbeat(watching.heartbeats, log.progress, now=now)
    return changed(watching, since=since, outputs=outputs, heartbeats=heartbeats)


def _next_look(view: ExecutingView, log: ReadLog, monitoring: MonitoringSettings) -> float:
    """Short at the start, near the end and when a stall is about to be proved; otherwise the set interval."""
    if view.watched:
        return monitoring.watch_interval
    age = view.visit.now - view.visit.job.state_since
    soon = [seconds for seconds in (log.progress.eta_seconds, log.again_in) if seconds is not None]
    return min(monitoring.poll_interval, max(monitoring.watch_interval, min([age / 10, *soon])))


def _chunk(attempt: int, piece: LogPiece) -> LogChunk:
    return LogChunk(attempt=attempt, stream=piece.stream, start=piece.start, end=piece.end, data=piece.data)


def _series(job: Job, status: Status) -> tuple[Block, ...]:
    """The measured rows; the steps of a resumed trainer that counts from 0 again continue those before it."""
    offset = job.watching.step_offset or 0
    return tuple(block_of(table.with_steps_moved(offset), attempt=job.attempt) for table in status.series)


def _checkpoints(job: Job, files: Iterable[OutputFile], outputs: Sequence[Output]) -> tuple[Checkpoint, ...]:
    """Outputs that are new or have changed since they were last recorded."""
    known = job.watching.outputs or {}
    changed = (file for file in _models(files) if known.get(file.path) != (file.size, file.mtime))
    return tuple(checkpoint_of(job, file, outputs) for file in changed)


def _models(files: Iterable[OutputFile]) -> Iterable[OutputFile]:
    """The checkpoints: samples and logs may be many, and are recorded once, when they are downloaded."""
    return (file for file in files if file.kind == OutputKind.CHECKPOINT)
