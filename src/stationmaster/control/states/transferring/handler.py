"""TRANSFERRING_DATA: the machine is ready. Send trackside, recipe, dataset and plan, and verify them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import (
    Handler,
    Step,
    at_fault,
    cut_off,
    failed_try,
    give_up,
    go_on,
    is_late,
    recovered,
    wait,
    wants_out_early,
)
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.keepalive import keepalive
from stationmaster.control.machine.sight import ANSWERING, Fate, Sighting, missed, sight
from stationmaster.control.results.checkpoint_collection import best_intact, intact_state
from stationmaster.control.results.job_folder import sent_configs
from stationmaster.control.results.transfer_progress import report_progress
from stationmaster.control.states.transferring.dataset_files import dataset_files, goes_as_files
from stationmaster.control.states.transferring.dataset_on_machine import (
    cache_dataset,
    can_be_cached,
    download_on_machine,
    take_cached,
)
from stationmaster.errors import DiskFull, MachineFault, RemoteError, TransferFailed, Unreachable
from stationmaster.files import known_sha256_of, sha256_of, write_atomically
from stationmaster.lifecycle import Move
from stationmaster.model import Collected, Job, Reason
from stationmaster.model.copying import changed
from stationmaster.recipes.adopted import attached
from stationmaster.recipes.configs import ConfigFile
from stationmaster.recipes.plan import JobIdentity, Plan, render_plan
from stationmaster.recipes.registry import StoredRecipe
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.base import Progress
from stationmaster.remote.host import Host
from stationmaster.remote.transfer import ROOM_TO_SPARE_BYTES, Sending, push_all_verified
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import NewEvent, Write

_ARCHIVE = "dataset.tar"
_DATASET = "dataset"
_RESUME = "resume/checkpoint.safetensors"
_STATE = "resume/state"
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferringView:
    visit: Visit
    sighting: Sighting = ANSWERING


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send everything the training needs; what is there already is not sent again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What a finished transfer reports."""

    resumed: Collected | None  # the earlier attempt's checkpoint that the training resumes from
    how: str | None  # the kind of the event for a dataset that need not be sent


async def observe(visit: Visit, world: World) -> TransferringView:
    if visit.job.unreachable_since is None or wants_out_early(visit.job):
        return TransferringView(visit=visit)
    return TransferringView(visit=visit, sighting=await sight(visit, world))


def decide(view: TransferringView, policy: Policy) -> Step[Send]:
    job, now = view.visit.job, view.visit.now
    if wants_out_early(job):
        return _give_up(view, Reason.CANCELLED_BY_USER, "cancelled before the training started")
    if view.sighting.fate in (Fate.GONE, Fate.STOPPED):
        explanation = f"the provider reports that the machine is {view.sighting.fate.value.lower()}"
        return _give_up(view, Reason.MACHINE_LOST, explanation)
    if is_late(job, now=now):
        return _give_up(view, Reason.HARD_LIMIT, "the limit was reached before the training started")
    if now - job.state_since > policy.limits.transfer:
        explanation = f"the dataset could not be sent within {policy.limits.transfer / 60:.0f} min"
        return _give_up(view, Reason.TRANSFER_FAILED, explanation)
    if view.sighting.fate is Fate.MISSING:
        return Step(write=wait(missed(job, view.sighting), policy.provider_look_seconds))
    return Step(then=Send())


def _give_up(view: TransferringView, reason: Reason, explanation: str) -> Step[Send]:
    return Step(write=give_up(view.visit.job, reason, now=view.visit.now, explanation=explanation))


async def perform(_action: Send, job: Job, view: TransferringView, world: World) -> Write:
    now = view.visit.now
    try:
        sent = await _send(job, view.visit, world)
    except Unreachable as problem:
        await drop_connection(job, world)
        return cut_off(job, now=now, policy=world.policy, problem=str(problem))
    except (RemoteError, DiskFull) as problem:
        return _send_failed(job, problem, now=now, world=world)
    offset = step_offset(job, sent.resumed, view.visit.recipe)
    after = changed(
        recovered(job),
        machine=changed(job.machine, absences=0, gone_read_at=None, transfer=None),
        watching=changed(job.watching, step_offset=offset),
    )
    return go_on(after, Move.DATA_VERIFIED, now=now, events=(*_data_events(job, sent), *_resume_events(sent.resumed)))


def _data_events(job: Job, sent: Sent) -> tuple[NewEvent, ...]:
    if (training := job.spec.adopted) is not None:
        payload = {"target": training.target, "pid": training.pid, "unknown": list(training.unknown)}
        return (NewEvent(kind="attached", payload=payload),)
    payload = {"sha256": job.spec.dataset.sha256, "bytes": job.spec.dataset.size}
    verified = NewEvent(kind="data_verified", payload=payload)
    return (NewEvent(kind=sent.how, payload=payload), verified) if sent.how is not None else (verified,)


def _resume_events(resumed: Collected | None) -> tuple[NewEvent, ...]:
    if resumed is None:
        return ()
    payload = {"path": resumed.path, "step": resumed.step, "from_attempt": resumed.attempt, "sha256": resumed.sha256}
    return (NewEvent(kind="resumed", payload=payload),)


def _send_failed(job: Job, problem: RemoteError | DiskFull, *, now: float, world: World) -> Write:
    """The machine answered with an error: retry a few times, then use another machine."""
    after, seconds, failures = failed_try(job, world.policy)
    event = NewEvent(kind="transfer_failed", payload={"problem": str(problem)})
    if failures + 1 < _MOST_FAILURES:
        return wait(after, seconds, events=(event,))
    is_false = isinstance(problem, MachineFault)
    reason = Reason.MACHINE_FAULT if is_false else Reason.TRANSFER_FAILED
    written = give_up(at_fault(job, str(problem)) if is_false else job, reason, now=now, explanation=str(problem))
    return changed(written, events=(event, *written.events))


async def _send(job: Job, visit: Visit, world: World) -> Sent:
    """Send everything; what is there already is not sent again. Raises RemoteError and DiskFull."""
    host = host_of(job, world)
    await host.install(world.trackside)
    saved = await best_intact(job, world) if visit.recipe.resume is not None else None
    async with keepalive(host, visit), report_progress(job, visit, "sending") as progress:
        how = await _send_all(job, host, visit, world, saved, progress)
    return Sent(resumed=saved, how=how)


async def _send_all(
    job: Job, host: Host, visit: Visit, world: World, saved: Collected | None, progress: Progress
) -> str | None:
    """Send everything; return the kind of the event for a dataset that need not be sent."""
    stored = visit.stored_recipe
    checkpoint = job.spec.resume_from if saved is None else saved.location
    resume = None if checkpoint is None else _RESUME
    step = resume_step(job, saved)
    state = await _resume_state(job, saved, stored.recipe)
    beside = None if state is None else _STATE
    plan = plan_of(job, stored.recipe, root=host.root, resume_from=resume, step=step, state=beside)
    if job.spec.adopted is not None:
        plan = attached(plan, job.spec.adopted, dates_log=not visit.monitoring.stall_detection.terminate)
    await host.put_plan({**plan.as_json(), "monitoring": sampling_of(visit.monitoring)})
    if job.spec.adopted is not None:
        return None  # somebody else's training has all it needs
    # Not in the store's threads, which renew the leases: a checkpoint may have gigabytes.
    files = await asyncio.to_thread(_files_of, stored, plan.configs, sent_configs(world.artifacts(job.id)))
    if checkpoint is not None:
        sha256 = await asyncio.to_thread(_sha256, Path(checkpoint))
        files.append(Sending(local=Path(checkpoint), path=_RESUME, sha256=sha256))
    if state is not None:
        files.append(Sending(local=state, path=_STATE, sha256=await asyncio.to_thread(_sha256, state)))
    return await _send_files(job, host, files, stored.recipe, world, progress)


async def _resume_state(job: Job, saved: Collected | None, recipe: Recipe) -> Path | None:
    """The trainer's state beside the checkpoint, if the recipe uses one and it is stored here."""
    if recipe.resume is None or recipe.resume.state is None:
        return None
    if saved is not None:
        return await intact_state(saved)
    place = None if job.spec.resume_state is None else Path(job.spec.resume_state)
    return place if place is not None and place.is_file() else None


async def _send_files(
    job: Job, host: Host, files: list[Sending], recipe: Recipe, world: World, progress: Progress
) -> str | None:
    unpacked_bytes = job.spec.dataset.size
    is_cached = can_be_cached(job, world.policy)
    room_bytes = job.spec.dataset.size + unpacked_bytes + ROOM_TO_SPARE_BYTES
    was_taken = is_cached and await take_cached(job, host, _ARCHIVE, room_bytes=room_bytes)
    if not was_taken and await download_on_machine(job, host, _DATASET, recipe, world):
        await push_all_verified(host, files, progress=progress)
        return "data_pulled"
    if not was_taken and await asyncio.to_thread(goes_as_files, job, world.policy):
        async with dataset_files(job, world.artifacts(job.id), below=_DATASET) as dataset:
            await push_all_verified(host, [*files, *dataset], progress=progress)
        return None
    archive = Sending(local=Path(job.spec.dataset.archive), path=_ARCHIVE, sha256=job.spec.dataset.sha256)
    sent = await push_all_verified(host, [*files, archive], further_bytes=unpacked_bytes, progress=progress)
    if is_cached:
        await cache_dataset(job, host, _ARCHIVE, world.policy)
    await host.unpack(_ARCHIVE, _DATASET, job.spec.dataset.sha256)
    return "data_already_there" if was_taken and _ARCHIVE not in sent else None


def resume_step(job: Job, saved: Collected | None) -> int | None:
    """The training step of the checkpoint that the attempt resumes from; None for none, or if unknown."""
    return job.spec.resume_step if saved is None else saved.step


def step_offset(job: Job, saved: Collected | None, recipe: Recipe) -> int | None:
    """What to add to the trainer's own step count if it counts from 0 again after a resume."""
    return resume_step(job, saved) if recipe.resume is not None and recipe.resume.counts_from_zero else None


def plan_of(
    job: Job,
    recipe: Recipe,
    *,
    root: str,
    resume_from: str | None,
    step: int | None = None,
    state: str | None = None,
) -> Plan:
    identity = JobIdentity(id=job.id, name=job.spec.name, trigger=job.spec.trigger or "", attempt=job.attempt)
    return render_plan(
        recipe,
        parameters=job.spec.parameters,
        job=identity,
        machine_root=root,
        resume_from=resume_from,
        resume_step=step,
        resume_state=state,
    )


def sampling_of(monitoring: MonitoringSettings) -> dict[str, Any]:
    """What the plan says about sampling the machine beside the training."""
    return {
        "enabled": monitoring.enabled,
        "interval_seconds": monitoring.sample_interval_seconds,
        "per_process": monitoring.track_per_process,
    }


def _files_of(stored: StoredRecipe, configs: Iterable[ConfigFile], folder: Path) -> list[Sending]:
    return [*_recipe_files(stored), *_write_configs(configs, folder)]


def _recipe_files(stored: StoredRecipe) -> list[Sending]:
    """The recipe's own files; every job sends them."""
    return [
        Sending(local=file, path=f"recipe/{name}", sha256=_sha256(file, known_sha256_of))
        for name, file in stored.shipped_files()
    ]


def _write_configs(configs: Iterable[ConfigFile], folder: Path) -> list[Sending]:
    """Write the plan's config files below `folder`, where they stay with the job; writing them again is harmless."""
    return [_write_config(config, folder / config.path) for config in configs]


def _write_config(config: ConfigFile, path: Path) -> Sending:
    content = config.text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as problem:
        raise TransferFailed(f"cannot write {path}: {problem.strerror}") from problem
    return Sending(local=path, path=config.path, sha256=hashlib.sha256(content).hexdigest())


def _sha256(file: Path, read: Callable[[Path], str] = sha256_of) -> str:
    try:
        return read(file)
    except OSError as problem:
        raise TransferFailed(f"cannot read {file}: {problem.strerror}") from problem


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
