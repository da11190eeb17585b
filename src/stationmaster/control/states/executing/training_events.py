"""What is new in a running training, each thing reported once: events, alerts, and the job as it is then. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stationmaster.control.flow.step import recovered
from stationmaster.control.machine.keepalive import unwritable_noted
from stationmaster.durations import format_duration
from stationmaster.model import Alert, Job, Progress, Reason
from stationmaster.model.copying import changed
from stationmaster.recipes.outputs import step_of
from stationmaster.recipes.schema import Output
from stationmaster.remote.status import HealthReport, StepStatus
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import NewEvent
from stationmaster.watch.escalation import CLEARED, FLAGGED, TERMINATE, StallEvent

MILESTONES = (25, 50, 75)
SOFT_LIMIT_FACTOR = 1.25
_SOFT_LIMIT_FLOOR_SECONDS = 300.0  # the estimate of a short job is dominated by things it does not know
_EPOCH_SHARE = 0.05  # of the run between two recorded epochs: small datasets have hundreds of them
_ENDED_EARLY = {Reason.STALLED, Reason.ANOMALY, Reason.HARD_LIMIT, Reason.MACHINE_STOPPED}
_HEALTH_ALERT = "health"
_STALL_ALERT = "stall"
_LONGEST_QUOTE = 200
_HEALTH_FAILURES = {"timeout": "timed out", "could_not_start": "could not be started"}


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What one judge found: the job as the next look has to know it, what to record, which alerts to raise or clear."""

    job: Job
    events: tuple[NewEvent, ...] = ()
    alerts: tuple[Alert, ...] = ()
    cleared_alerts: tuple[str, ...] = ()


def all_news(job: Job, judges: Iterable[Callable[[Job], News]]) -> News:
    """What all judges find; each gets the job as the one before left it."""
    found = News(job=job)
    for judge in judges:
        news = judge(found.job)
        found = News(
            job=news.job,
            events=(*found.events, *news.events),
            alerts=(*found.alerts, *news.alerts),
            cleared_alerts=(*found.cleared_alerts, *news.cleared_alerts),
        )
    return found


def answer_news(job: Job) -> News:
    """The machine has answered: failures in a row are forgotten, and an alert about its silence is cleared."""
    cleared = ("silence",) if job.unreachable_since is not None else ()
    machine = changed(job.machine, absences=0, gone_read_at=None, transfer=None)
    after = recovered(job)
    after = changed(after, machine=machine, setbacks=changed(after.setbacks, faults=0))
    return News(job=after, cleared_alerts=cleared)


def duration_news(job: Job, *, now: float) -> News:
    """An alert for a training that takes longer than estimated; only the hard limit stops anything."""
    if job.spec.adopted is not None:  # nobody estimated it
        return News(job=job)
    expected = job.spec.quote.hours_expected * 3600
    ran = now - job.state_since
    if ran <= max(expected * SOFT_LIMIT_FACTOR, _SOFT_LIMIT_FLOOR_SECONDS):
        return News(job=job)
    message = f"has run {ran / 60:.0f} min (estimate {expected / 60:.0f} min)"
    if job.deadline_at is not None:
        message += f"; will be stopped at its limit of {format_duration(job.deadline_at - job.state_since)}"
    return News(job=job, alerts=(Alert(kind="soft_limit", job_id=job.id, message=message),))


def step_news(job: Job, steps: Sequence[StepStatus], tries: Mapping[str, int] | None = None) -> News:
    """The changes of the plan's steps since the last look, and the start of the training itself.

    `tries`: how often each step may be tried.
    """
    known = job.watching.steps or {}
    begun = [step for step in steps if step.state != "pending"]
    moved = [step for step in begun if known.get(step.name) != _progress_of(step)]
    training = next((step for step in begun if step.training), None)
    has_trained = job.watching.trained or any(step.training and step.name in known for step in steps)
    allowed = tries or {}
    events = (
        *(NewEvent(kind="step", payload=_step_payload(step, allowed.get(step.name))) for step in moved),
        *(() if training is None or has_trained else _training_started(job, training)),
    )
    watching = changed(
        job.watching,
        steps={step.name: _progress_of(step) for step in begun},
        trained=job.watching.trained or training is not None,
    )
    return News(job=changed(job, watching=watching), events=events)


def _training_started(job: Job, step: StepStatus) -> tuple[NewEvent, ...]:
    return (NewEvent(kind="training_started", payload={"attempt": job.attempt, "step": step.name}),)


def milestone_news(job: Job, progress: Progress) -> News:
    """The highest milestone passed since the last one that was recorded; each is recorded once a job."""
    reached = job.watching.milestone
    if progress.step is None or not progress.total_steps or progress.step >= progress.total_steps:
        return News(job=job)
    passed = [percent for percent in MILESTONES if reached < percent <= 100 * progress.step / progress.total_steps]
    if not passed:
        return News(job=job)
    payload = {"percent": passed[-1], **_where(progress), "loss": progress.loss, "eta_seconds": progress.eta_seconds}
    watching = changed(job.watching, milestone=passed[-1])
    return News(job=changed(job, watching=watching), events=(NewEvent(kind="milestone", payload=payload),))


def epoch_news(job: Job, progress: Progress, *, names_beginning: bool = False) -> News:
    """The end of an epoch: the trainer counts a later one. Of epochs that follow closely only some are recorded.

    Most trainers count the epochs that are done; `names_beginning`: this one names the epoch that begins.
    """
    before, after, told_at = job.progress.epoch, progress.epoch, job.watching.epoch_event_step
    if before is None or after is None or math.floor(after) <= math.floor(before):
        return News(job=job)
    step = progress.step or 0
    if progress.total_steps and 0 <= step - told_at < _EPOCH_SHARE * progress.total_steps:
        return News(job=job)
    payload = {"epoch": math.floor(after) - names_beginning, **_where(progress)}
    watching = changed(job.watching, epoch_event_step=step)
    return News(job=changed(job, watching=watching), events=(NewEvent(kind="epoch_ended", payload=payload),))


def stall_news(
    job: Job, event: StallEvent | None, monitoring: MonitoringSettings, outputs: Sequence[Output] = ()
) -> News:
    """The stall watch's verdict, with the last checkpoint and the grace period; no grace: we do not stop it."""
    if event is None:
        return News(job=job)
    grace = monitoring.grace_period / 60 if monitoring.stall_detection.terminate else None
    more = {"grace_minutes": grace, "checkpointStep": checkpoint_step(job, outputs)}
    is_over = event.kind == TERMINATE
    watching = changed(job.watching, stalled=job.watching.stalled or is_over)
    return News(
        job=changed(job, watching=watching),
        events=(NewEvent(kind=event.kind, payload={**event.analysis.as_json(), **more}),),
        alerts=(_stall_alert(job, event, monitoring),) if event.kind == FLAGGED else (),
        cleared_alerts=(_STALL_ALERT,) if is_over or event.kind == CLEARED else (),
    )


def _stall_alert(job: Job, event: StallEvent, monitoring: MonitoringSettings) -> Alert:
    minutes = round(monitoring.grace_period / 60)
    terminates = monitoring.stall_detection.terminate
    reason = event.analysis.reason.rstrip(".")
    ends = f"will be stopped in {minutes} min unless progress resumes" if terminates else "keeps running"
    return Alert(kind=_STALL_ALERT, job_id=job.id, message=f"stalled: {reason} ({ends})")


def disk_news(job: Job, unwritten: str | None) -> News:
    """The event, once, that the machine can write nothing; its training and its results are read all the same."""
    after, events = unwritable_noted(job, unwritten)
    return News(job=after, events=events)


def health_news(job: Job, report: HealthReport | None) -> News:
    """A change in what the recipe's own health check reports: an alert while it fails."""
    was_well = job.watching.health_ok is not False
    is_well = was_well if report is None else report.ok
    after = changed(job, watching=changed(job.watching, health_ok=is_well))
    if report is None or is_well == was_well:
        return News(job=after)
    if is_well:
        return News(job=after, events=(NewEvent(kind="health_well", payload={}),), cleared_alerts=(_HEALTH_ALERT,))
    problem = health_problem(report)
    return News(
        job=after,
        events=(NewEvent(kind="health_failed", payload={"problem": problem, "exit_code": report.exit_code}),),
        alerts=(Alert(kind=_HEALTH_ALERT, job_id=job.id, message=f"{problem}; the training continues"),),
    )


def health_problem(report: HealthReport) -> str:
    """One line on a failed check, with the last line that it printed."""
    how = _HEALTH_FAILURES.get(report.failure or "", f"failed with exit code {report.exit_code}")
    lines = report.tail.splitlines()
    return f"the health check {how}" + (f": {lines[-1][:_LONGEST_QUOTE]}" if lines else "")


def end_events(job: Job, outputs: Sequence[Output]) -> tuple[NewEvent, ...]:
    """The event of a training that was stopped early without a request of the user."""
    ending = job.ending.reason
    if ending not in _ENDED_EARLY:
        return ()
    saved = checkpoint_step(job, outputs, before=job.watching.spoilt_at)
    payload = {"reason": ending, "checkpointStep": saved}
    return (NewEvent(kind="terminated", payload=payload),)


def checkpoint_step(job: Job, outputs: Sequence[Output], *, before: int | None = None) -> int | None:
    """The step of the latest checkpoint on the machine, if possible from `before` its loss became NaN; None: none."""
    files, offset = job.watching.outputs or (), job.watching.step_offset
    steps = [step for path in files if (step := step_of(path, outputs, offset=offset)) is not None]
    sound = [step for step in steps if before is None or step < before]
    return max(sound or steps, default=None)


def _progress_of(step: StepStatus) -> str:
    return f"{step.state}.{step.try_number}"


def _step_payload(step: StepStatus, tries: int | None) -> dict[str, Any]:
    payload = {"step": step.name, "state": step.state, "try": step.try_number, "exit_code": step.exit_code}
    killed_by = {} if step.signal is None else {"signal": step.signal}
    return {**payload, **killed_by, "tries": tries}


def _where(progress: Progress) -> dict[str, Any]:
    return {"step": progress.step, "total_steps": progress.total_steps}
