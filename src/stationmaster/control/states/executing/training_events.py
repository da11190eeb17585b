"""Events of a training that people want to hear of: its start, its milestones, its epochs, its early end. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from stationmaster.model import Job, Progress, Reason
from stationmaster.recipes.outputs import step_of
from stationmaster.recipes.schema import Output
from stationmaster.remote.host import StepStatus
from stationmaster.store.writes import NewEvent

MILESTONES = (25, 50, 75)
_EPOCH_SHARE = 0.05  # of the run, between two epochs that are told: small datasets have hundreds of them
_ENDED_FOR_PEOPLE = {Reason.STALLED, Reason.ANOMALY, Reason.HARD_LIMIT, Reason.MACHINE_STOPPED}


def start_events(job: Job, steps: Iterable[StepStatus]) -> tuple[NewEvent, ...]:
    """The training itself has begun, told at the first look that sees it."""
    known = job.watching.steps or {}
    fresh = (step for step in steps if step.training and step.state != "pending" and step.name not in known)
    return tuple(
        NewEvent(kind="training_started", payload={"attempt": job.attempt, "step": step.name}) for step in fresh
    )


def milestone_events(job: Job, progress: Progress) -> tuple[int, tuple[NewEvent, ...]]:
    """The last milestone told, and the highest that was passed since the one before; each is told once a job."""
    told = job.watching.milestone
    if progress.step is None or not progress.total_steps or progress.step >= progress.total_steps:
        return told, ()
    passed = [percent for percent in MILESTONES if told < percent <= 100 * progress.step / progress.total_steps]
    if not passed:
        return told, ()
    payload = {"percent": passed[-1], **_where(progress), "loss": progress.loss, "eta_seconds": progress.eta_seconds}
    return passed[-1], (NewEvent(kind="milestone", payload=payload),)


def epoch_events(job: Job, progress: Progress, *, names_beginning: bool = False) -> tuple[int, tuple[NewEvent, ...]]:
    """The step at which an epoch was last told, and the event of one that has ended since, if it is to be told.

    An epoch has ended when the trainer counts a later one. Of epochs that follow closely only some are told. Most
    trainers count the epochs that are done; `names_beginning`: this one says which epoch begins.
    """
    before, after, told_at = job.progress.epoch, progress.epoch, job.watching.epoch_told_at
    if before is None or after is None or math.floor(after) <= math.floor(before):
        return told_at, ()
    step = progress.step or 0
    if progress.total_steps and 0 <= step - told_at < _EPOCH_SHARE * progress.total_steps:
        return told_at, ()
    event = NewEvent(kind="epoch_ended", payload={"epoch": math.floor(after) - names_beginning, **_where(progress)})
    return step, (event,)


def end_events(job: Job, outputs: Sequence[Output]) -> tuple[NewEvent, ...]:
    """A training that was ended early, though nobody asked for it."""
    ending = job.ending.reason
    if ending not in _ENDED_FOR_PEOPLE:
        return ()
    saved = checkpoint_step(job, outputs, before=job.watching.spoilt_at)
    payload = {"reason": ending, "checkpointStep": saved}
    return (NewEvent(kind="terminated", payload=payload),)


def checkpoint_step(job: Job, outputs: Sequence[Output], *, before: int | None = None) -> int | None:
    """The step of the latest checkpoint among the machine's files, `before` its loss was no number; None for none."""
    files, offset = job.watching.outputs or (), job.watching.step_offset
    steps = [step for path in files if (step := step_of(path, outputs, offset=offset)) is not None]
    sound = [step for step in steps if before is None or step < before]
    return max(sound or steps, default=None)


def _where(progress: Progress) -> dict[str, Any]:
    return {"step": progress.step, "total_steps": progress.total_steps}
