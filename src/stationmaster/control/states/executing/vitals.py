"""The vital signs of a training, kept between visits within bounds, and the anomalies in them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stationmaster.control.results.run_facts import gpu_samples
from stationmaster.control.states.executing.comparison import Comparison
from stationmaster.control.states.executing.log_watch import ReadLog
from stationmaster.control.states.executing.memory_peaks import extended_peaks, memory_peaks
from stationmaster.control.states.executing.training_events import News
from stationmaster.model import Alert, Checkpoint, Job, Progress
from stationmaster.model.copying import changed
from stationmaster.money import MicroDollars, cost
from stationmaster.parsers.base import ErrorKind, Reading
from stationmaster.remote.status import Status
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import NewEvent
from stationmaster.watch.anomalies.base import (
    AnomalyFinding,
    DiskSample,
    LossPoint,
    Reaction,
    SavedCheckpoint,
    SkewSample,
    Vitals,
)
from stationmaster.watch.anomalies.registry import find_anomalies, read_reactions, with_reaction

_LOSSES_KEPT = 200
_SAMPLES_KEPT = 60
_CHECKPOINTS_KEPT = 20

Row = list[float | None]


def vitals_news(
    job: Job,
    status: Status,
    log: ReadLog,
    checkpoints: Iterable[Checkpoint],
    comparison: Comparison | None,
    monitoring: MonitoringSettings,
    *,
    now: float,
) -> News:
    """Add the status to the vital signs kept so far, and judge them; each kind of anomaly is news once."""
    kept = _extended(job.watching.vitals or {}, status, log.log_readings, checkpoints, now=now)
    known = list(job.watching.anomalies)
    progress = log.progress if log.is_measured else changed(log.progress, eta_seconds=None)  # the first ones are wild
    vitals = _vitals(job, kept, progress, monitoring, now=now)
    reactions = read_reactions(monitoring.reactions)
    findings = find_anomalies(vitals, reactions, reported=known) if status.training_alive else []
    unusual = comparison.outliers if comparison else ()
    findings += [with_reaction(anomaly, reactions) for anomaly in unusual if anomaly.name not in known]
    known += [finding.anomaly.name for finding in findings]
    watching = changed(
        job.watching,
        vitals=kept,
        anomalies=tuple(known),
        spoilt_at=job.watching.spoilt_at or (spoilt_from(vitals.losses) if "nan_loss" in known else None),
        sick=job.watching.sick or any(finding.reaction is Reaction.STOP for finding in findings),
        compared=comparison.percent if comparison else job.watching.compared,
    )
    return News(
        job=changed(job, watching=watching),
        events=tuple(_anomaly_event(finding) for finding in findings),
        alerts=tuple(
            Alert(kind=finding.anomaly.kind, job_id=job.id, message=finding.anomaly.evidence)
            for finding in findings
            if finding.reaction is not Reaction.NOTE
        ),
    )


def _anomaly_event(finding: AnomalyFinding) -> NewEvent:
    anomaly = finding.anomaly
    payload = {
        "anomaly": anomaly.kind,
        "evidence": anomaly.evidence,
        "confidence": anomaly.confidence.value,
        "reaction": finding.reaction.value,
    }
    return NewEvent(kind="anomaly", payload=payload)


def spoilt_from(losses: Sequence[LossPoint]) -> int | None:
    """The step from which on the weights are NaN, so that no later checkpoint counts as the best.

    Some trainers print such a loss as exactly 0: zeros at the end count too.
    """
    spoilt = next((point.step for point in losses if not math.isfinite(point.loss)), None)
    for point in reversed(losses):
        if math.isfinite(point.loss) and point.loss != 0.0:
            break
        spoilt = point.step if spoilt is None else min(spoilt, point.step)
    return spoilt


def _extended(
    before: Mapping[str, Any],
    status: Status,
    readings: Iterable[Reading],
    checkpoints: Iterable[Checkpoint],
    *,
    now: float,
) -> dict[str, Any]:
    gpus = [[now, gpu.utilization_percent, gpu.memory_used_mib, gpu.memory_total_mib] for gpu in status.gpu or ()]
    kept_gpus = list(before.get("gpus", ()))
    kept_gpus += [[] for _ in range(len(gpus) - len(kept_gpus))]
    return {
        "losses": _thinned([*before.get("losses", ()), *_losses(readings, now=now)], _LOSSES_KEPT),
        "gpus": [[*old, new][-_SAMPLES_KEPT:] for old, new in zip(kept_gpus, gpus, strict=False)],
        "memory": extended_peaks(before.get("memory", {}), status.series),
        "disk": [*before.get("disk", ()), *_disk(status, now=now)][-_SAMPLES_KEPT:],
        "clock": [*before.get("clock", ()), [now, status.wall - now]][-_SAMPLES_KEPT:],
        "checkpoints": [*before.get("checkpoints", ()), *_saved(checkpoints, now=now)][-_CHECKPOINTS_KEPT:],
    }


def _losses(readings: Iterable[Reading], *, now: float) -> list[Row]:
    """(time, step, loss) rows; a NaN loss is None here and nan for the rules."""
    rows: list[Row] = []
    step = None
    for reading in readings:
        step = reading.step if reading.step is not None else step
        is_nan = reading.error is not None and reading.error.kind is ErrorKind.NAN_LOSS
        if step is not None and (reading.loss is not None or is_nan):
            rows.append([reading.at if reading.at is not None else now, step, None if is_nan else reading.loss])
    return rows


def _thinned(rows: list[Row], most: int) -> list[Row]:
    """The newest half unchanged, every second row of the older half: the curve stays, the list does not grow."""
    while len(rows) > most:
        half = len(rows) // 2
        rows = [*rows[:half:2], *rows[half:]]
    return rows


def _disk(status: Status, *, now: float) -> list[Row]:
    return [] if status.disk is None else [[now, status.disk.free_bytes]]


def _saved(checkpoints: Iterable[Checkpoint], *, now: float) -> list[Row]:
    return [[now, one.step, one.size] for one in checkpoints if one.step is not None]


def _vitals(
    job: Job, kept: Mapping[str, Any], progress: Progress, monitoring: MonitoringSettings, *, now: float
) -> Vitals:
    return Vitals(
        now=now,
        started_at=job.state_since,
        step=progress.step,
        total_steps=progress.total_steps,
        phase=progress.phase,
        steps_per_second=progress.steps_per_second,
        eta_seconds=progress.eta_seconds,
        losses=[
            LossPoint(at=at, step=int(step), loss=math.nan if loss is None else loss)
            for at, step, loss in kept["losses"]
        ],
        gpus=[gpu_samples(rows) for rows in kept["gpus"]],
        memory=memory_peaks(kept["memory"]),
        memory_warning_share=monitoring.memory_warning_threshold,
        memory_critical_share=monitoring.memory_critical_threshold,
        disk=[DiskSample(at=at, free_bytes=free) for at, free in kept["disk"]],
        checkpoints=[SavedCheckpoint(at=at, step=int(step), size_bytes=size) for at, step, size in kept["checkpoints"]],
        checkpoint_every_steps=_save_every(job),
        clock=[SkewSample(at=at, ahead_seconds=ahead) for at, ahead in kept["clock"]],
        **_limits(job, now=now),
    )


def _limits(job: Job, *, now: float) -> dict[str, Any]:
    """What the job may take and cost. Where the money ends first it is the limit, and the hours are not."""
    funding, ends_at = job.funding, job.deadline_at
    hours = None if ends_at is None else max(0.0, ends_at - job.state_since)
    if funding.rate_per_hour is None or funding.paid_until is None:
        return {"max_seconds": hours}
    credit = job.spec.max_spend if funding.hold is None else funding.hold
    left = cost(funding.rate_per_hour, max(0.0, funding.paid_until - now))
    return {
        "max_seconds": None if ends_at is None or funding.paid_until <= ends_at else hours,
        "price_per_hour": funding.rate_per_hour,
        "spent": MicroDollars(credit - left),
        "credit": credit,
    }


def _save_every(job: Job) -> int | None:
    every = job.spec.parameters.get("save_every")
    return every if isinstance(every, int) else None
