"""Save before stop: ask a training that is to end for a last checkpoint, if its recipe supports it.

The request is recorded before it is sent, and its result before the stop: after a crash the next worker looks for the
same checkpoint and does not ask twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import World
from stationmaster.control.machine.access import host_of
from stationmaster.errors import CommandFailed
from stationmaster.model import Job, LastSave, Reason
from stationmaster.parsers.base import Phase
from stationmaster.parsers.quotes import quoted
from stationmaster.recipes.commands import SaveRequest
from stationmaster.remote.host import RequestState
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import NewEvent, Write

_LOOK_SECONDS = 2.0  # how long one visit waits for the checkpoint
_PAUSE_SECONDS = 0.5
_SAVING = "saving"
# A checkpoint saved now would be worse than the one before, or there is no disk space for it.
_BETTER_NOT_SAVED = ("nan_loss", "divergence", "disk_filling")
_WITHOUT_TRAINER = (Reason.MACHINE_STOPPED, Reason.OUTBID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """Ask for a checkpoint before the training is stopped. The reason to stop is already recorded."""


def save_first(
    job: Job, reason: Reason, request: SaveRequest | None, monitoring: MonitoringSettings, *, now: float
) -> Job | None:
    """The job with the request recorded, while its checkpoint is worth waiting for; None: stop the training now."""
    asked = job.ending.save
    if request is None or (asked is None and not _is_worth_saving(job, reason)):
        return None  # judged once: after the request the phase is `saving` because of it
    asked = asked or LastSave(state=_SAVING, at=now)
    is_over = now - asked.at >= min(request.timeout, monitoring.save_timeout)
    return None if is_over or asked.state != _SAVING else _with_save(job, asked)


def save_events(before: Job, after: Job) -> tuple[NewEvent, ...]:
    """The event of a new request for a checkpoint."""
    is_new = after.ending.save is not None and before.ending.save is None
    return (NewEvent(kind="save_asked", payload={"reason": after.ending.reason}),) if is_new else ()


async def ask_to_save(job: Job, world: World) -> Write:
    """Ask the training once, and look for what it saves; a machine that cannot take the request saves nothing.

    Raises RemoteError.
    """
    asked = job.ending.save
    assert asked is not None, "the request is recorded first"
    try:
        found = await host_of(job, world).save(f"attempt-{job.attempt}", wait_seconds=_LOOK_SECONDS)
    except CommandFailed as problem:
        found = RequestState(state="refused", problem=str(problem))
    if found.state == _SAVING:
        return wait(job, _PAUSE_SECONDS)
    after = _with_save(job, replace(asked, state=found.state))
    payload: dict[str, Any] = {"state": found.state, "files": list(found.files)}
    if found.problem:
        payload["problem"] = quoted(found.problem)
    return wait(after, 0.0, events=(NewEvent(kind="save_ended", payload=payload),))


def _with_save(job: Job, asked: LastSave) -> Job:
    return replace(job, ending=replace(job.ending, save=asked))


def _is_worth_saving(job: Job, reason: Reason) -> bool:
    if reason in _WITHOUT_TRAINER or not job.progress.step:
        return False  # no process to save, or nothing to save; before its first step a trainer may not be able to yet
    if reason is Reason.STALLED and job.progress.phase == Phase.SAVING:
        return False  # it hangs in the save that it would be asked for
    return reason is not Reason.ANOMALY or not set(job.watching.anomalies) & set(_BETTER_NOT_SAVED)
