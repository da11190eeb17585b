"""Downloads checkpoints during the training, so that a lost machine costs minutes and not the run.

Only a file that is no longer written is taken; it counts once its hash matches the machine's and it opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.control.flow.kept_checkpoints import best_first
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import cut_off, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.keepalive import keepalive
from stationmaster.control.results.checkpoint_mirror import mirror_checkpoint, remove_mirrored, restore_checkpoint
from stationmaster.control.results.job_folder import LATEST, arriving, collected_path, keep_only, replace_link
from stationmaster.control.results.transfer_progress import report_progress
from stationmaster.delivery.safetensors_header import SafetensorsFile, open_safetensors
from stationmaster.errors import DiskFull, RemoteError, TransferFailed, Unreachable
from stationmaster.files import sha256_of
from stationmaster.model import Checkpoint, Collected, Job, OutputFile, TrainerState
from stationmaster.recipes.outputs import is_safe_to_load, step_of
from stationmaster.recipes.schema import Output, OutputKind
from stationmaster.remote.status import Status
from stationmaster.remote.transfer import pull_verified
from stationmaster.store.writes import NewEvent, Write

_SETTLED_SECONDS = 2.0  # two looks can be a moment apart: the file itself must also be this old
_ASKED_SECONDS = 30.0  # how long to wait for the checkpoint that a user requested, if a trainer writes all the time
_AGAIN_SECONDS = 60.0  # before a failed collection is retried, or less if the interval is shorter


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Download one checkpoint of the running training, and the trainer's state that belongs to it."""

    file: OutputFile
    state: OutputFile | None = None


def next_collection(job: Job, status: Status, *, before: Job, policy: Policy, now: float) -> Collect | None:
    """What to download now: the newest checkpoint that did not change since the look of `before`, and its state."""
    last = job.state_since if job.collection.at is None else job.collection.at
    asked_until = job.collection.newest_until
    if policy.artifacts.every <= 0 or (asked_until is None and now - last < policy.artifacts.every):
        return None
    seen = before.watching.outputs or {}
    small = [file for file in status.outputs if file.size <= policy.artifacts.cap_bytes]
    settled = [file for file in small if _is_settled(file, seen.get(file.path), wall=status.wall)]
    newest = max(settled, key=lambda file: (file.mtime, file.path), default=None)
    if newest is None or any(one.is_of(job.attempt, newest) for one in job.collection.checkpoints):
        return None
    if asked_until is not None and now < asked_until and _has_newer(newest, status):
        return None
    return Collect(file=newest, state=_state_of(newest, status))


def with_newest_wanted(job: Job, *, now: float) -> Job:
    """The job with its newest checkpoint to be downloaded as soon as it no longer changes, not at the next interval."""
    return replace(job, collection=replace(job.collection, newest_until=now + _ASKED_SECONDS))


def _has_newer(checkpoint: OutputFile, status: Status) -> bool:
    models = (file for file in status.outputs if file.kind == OutputKind.CHECKPOINT)
    return any(file.mtime > checkpoint.mtime for file in models)


def _state_of(checkpoint: OutputFile, status: Status) -> OutputFile | None:
    """The trainer's state that was written with this checkpoint: after it, and before any newer one."""
    states = [file for file in status.outputs if file.kind == OutputKind.STATE and _is_still(file, wall=status.wall)]
    state = max(states, key=lambda file: (file.mtime, file.path), default=None)
    if state is None or state.mtime < checkpoint.mtime or _has_newer(checkpoint, status):
        return None
    return state


def checkpoints_to_keep(found: Sequence[Collected], *, keep: int) -> list[Collected]:
    """The best, the latest, and the newest others, up to `keep` in all."""
    chosen = {id(one) for one in (*best_first(found)[:1], *found[-1:])}
    for one in reversed(found):
        if len(chosen) < keep:
            chosen.add(id(one))
    return [one for one in found if id(one) in chosen]


def with_locations(checkpoints: Iterable[Checkpoint], job: Job) -> Iterator[Checkpoint]:
    """The same checkpoints, each with its local path if the same bytes were downloaded before."""
    places = {(one.path, one.sha256): one for one in job.collection.checkpoints if one.attempt == job.attempt}
    for checkpoint in checkpoints:
        one = places.get((checkpoint.path, checkpoint.sha256 or ""))
        if one is None:
            yield checkpoint
        else:
            step = checkpoint.step if checkpoint.step is not None else one.step
            yield replace(checkpoint, location=one.location, verified_at=one.verified_at, step=step)


async def keep_fetched(job: Job, safe: Checkpoint, file: OutputFile, world: World) -> Job:
    """Keep a checkpoint that was downloaded after the training was interrupted, for the next attempt to resume from."""
    assert safe.location is not None
    assert safe.sha256 is not None
    assert safe.verified_at is not None
    place = collected_path(world.artifacts(job.id), attempt=job.attempt, path=file.path)
    try:
        await asyncio.to_thread(_link_aside, Path(safe.location), place)
        opened = await asyncio.to_thread(_open_or_delete, place)
    except (TransferFailed, OSError):
        return job  # it was being written when the machine stopped, or this file system has no hard links
    one = Collected(
        attempt=job.attempt,
        path=file.path,
        size=file.size,
        mtime=file.mtime,
        sha256=safe.sha256,
        location=str(place),
        verified_at=safe.verified_at,
        step=safe.step if safe.step is not None or opened is None else opened.step,
        has_nan=opened is not None and opened.has_nan is True,
    )
    others = [each for each in job.collection.checkpoints if each.location != one.location]
    return replace(job, collection=replace(job.collection, checkpoints=(*others, one)))


async def best_intact(job: Job, world: World) -> Collected | None:
    """The best downloaded checkpoint whose local bytes are still the verified ones, for another machine to resume from.

    Only weights: loading a file that one rented machine wrote must not run its code on another, or here. A file that is
    missing, as on another host than the one that downloaded it, is restored from the bucket.
    """
    for one in best_first(job.collection.checkpoints):
        if not is_safe_to_load(one.path):
            continue
        if await asyncio.to_thread(_is_intact, one):
            return one
        place = Path(one.location)
        if one.mirrored and await restore_checkpoint(job, one.attempt, one.path, place, one.sha256, world):
            return one
    return None


async def intact_state(one: Collected) -> Path | None:
    """The trainer's state of a downloaded checkpoint, if its local file is unchanged."""
    if one.state is None:
        return None
    place = Path(one.state.location)
    return place if await asyncio.to_thread(_has_hash, place, one.state.sha256) else None


async def collect(action: Collect, job: Job, visit: Visit, outputs: Sequence[Output], world: World) -> Write:
    try:
        async with keepalive(host_of(job, world), visit, after_status=True):
            fresh, opened = await _fetch_checkpoint(action.file, job, visit, outputs, world)
            sent = replace(action.file, sha256=fresh.sha256)
            fresh = replace(fresh, mirrored=await mirror_checkpoint(sent, job, world))
            fresh = replace(fresh, state=await _fetch_state(action.state, job, visit, world))
    except Unreachable as problem:
        await drop_connection(job, world)
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))
    except (RemoteError, DiskFull) as problem:
        return _collection_failed(job, problem, visit, world.policy)
    # Only the newest has its state: it is as large as the checkpoint, and overwritten on the machine.
    older = (replace(one, state=None) for one in job.collection.checkpoints if one.location != fresh.location)
    found = [*older, fresh]
    stay = checkpoints_to_keep(found, keep=world.policy.artifacts.keep)
    collection = replace(job.collection, checkpoints=tuple(stay), at=visit.now, failed=False, newest_until=None)
    after = replace(job, collection=collection)
    gone = [replace(_row(one), location=None, verified_at=None) for one in found if one not in stay]
    state = _state_rows(action.state, fresh)
    event = NewEvent(kind="checkpoint_safe", payload=_payload(fresh, opened))
    await visit.record(wait(after, 0.0, checkpoints=(*gone, _row(fresh), *state), events=(event,)))
    await asyncio.to_thread(_delete_others, world.artifacts(job.id), stay)
    for one in found:
        if one.mirrored and one not in stay:
            await remove_mirrored(job, one.attempt, one.path, world)
    return wait(after, 0.0)


async def _fetch_checkpoint(
    file: OutputFile, job: Job, visit: Visit, outputs: Sequence[Output], world: World
) -> tuple[Collected, SafetensorsFile | None]:
    host = host_of(job, world)
    there = (await host.hash([file.path])).get(file.path)
    if there is None:
        raise TransferFailed(f"{file.path} is no longer on the machine")
    folder = world.artifacts(job.id)
    target = collected_path(folder, attempt=job.attempt, path=file.path)
    async with report_progress(job, visit, "fetching") as progress:
        await pull_verified(host, file.path, target, there, parts=arriving(folder), progress=progress)
    opened = await asyncio.to_thread(_open_or_delete, target)
    step = step_of(file.path, outputs, offset=job.watching.step_offset)
    one = Collected(
        attempt=job.attempt,
        path=file.path,
        size=file.size,
        mtime=file.mtime,
        sha256=there.sha256,
        location=str(target),
        verified_at=visit.now,
        step=step if step is not None or opened is None else opened.step,
        has_nan=opened is not None and opened.has_nan is True,
    )
    return one, opened


async def _fetch_state(file: OutputFile | None, job: Job, visit: Visit, world: World) -> TrainerState | None:
    """Download the trainer's state; None if it has changed meanwhile: then it belongs to the next checkpoint."""
    if file is None:
        return None
    host, folder = host_of(job, world), world.artifacts(job.id)
    there = (await host.hash([file.path])).get(file.path)
    if there is None or there.size != file.size:
        return None
    target = collected_path(folder, attempt=job.attempt, path=file.path)
    async with report_progress(job, visit, "fetching") as progress:
        try:
            await pull_verified(host, file.path, target, there, parts=arriving(folder), progress=progress)
        except TransferFailed:
            return None  # the checkpoint counts without its state
    return TrainerState(location=str(target), sha256=there.sha256)


def _open_or_delete(target: Path) -> SafetensorsFile | None:
    """Read the file's header; delete a file that does not open: it was still being written."""
    if target.suffix != ".safetensors":
        return None
    try:
        return open_safetensors(target)
    except TransferFailed:
        target.unlink(missing_ok=True)
        raise


def _link_aside(fetched: Path, place: Path) -> None:
    """Keep the bytes under a second name: a later attempt may download other bytes to the first one."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.hardlink_to(fetched)


def _collection_failed(job: Job, problem: Exception, visit: Visit, policy: Policy) -> Write:
    """The training continues; the failure is recorded once until a collection works again."""
    events = () if job.collection.failed else (NewEvent(kind="collect_failed", payload={"problem": str(problem)}),)
    again = visit.now - policy.artifacts.every + min(policy.artifacts.every, _AGAIN_SECONDS)
    later = replace(job.collection, at=again, failed=True, newest_until=None)
    return wait(replace(job, collection=later), 0.0, events=events)


def _delete_others(folder: Path, stay: Sequence[Collected]) -> None:
    """Delete other checkpoints, after the write: a crash in between leaves a file that the next collection deletes.

    The link is moved before its old target is deleted: it never dangles.
    """
    best = next((Path(one.location) for one in best_first(stay) if one.path.endswith(".safetensors")), None)
    if best is not None:
        replace_link(folder / LATEST, best)
    states = [Path(one.state.location) for one in stay if one.state is not None]
    keep_only(folder, [*(Path(one.location) for one in stay), *states])


def _row(one: Collected) -> Checkpoint:
    return Checkpoint(
        attempt=one.attempt,
        path=one.path,
        kind=OutputKind.CHECKPOINT.value,
        size=one.size,
        step=one.step,
        sha256=one.sha256,
        location=one.location,
        verified_at=one.verified_at,
    )


def _state_rows(file: OutputFile | None, one: Collected) -> tuple[Checkpoint, ...]:
    """The trainer's state, with the step of the checkpoint that it belongs to."""
    if file is None or one.state is None:
        return ()
    row = replace(_row(one), path=file.path, size=file.size, kind=OutputKind.STATE.value)
    return (replace(row, sha256=one.state.sha256, location=one.state.location),)


def _payload(one: Collected, opened: SafetensorsFile | None) -> dict[str, object]:
    tensors = None if opened is None else opened.tensors
    known = {"path": one.path, "step": one.step, "size": one.size, "sha256": one.sha256}
    return {**known, "tensors": tensors, "nan": one.has_nan}


def _is_settled(file: OutputFile, seen: tuple[int, float] | None, *, wall: float) -> bool:
    """Whether the file is complete. A time in the future comes from another clock; then only its stability counts."""
    if file.kind != OutputKind.CHECKPOINT or seen != (file.size, file.mtime):
        return False
    return _is_still(file, wall=wall)


def _is_still(file: OutputFile, *, wall: float) -> bool:
    return file.size > 0 and not 0 <= wall - file.mtime < _SETTLED_SECONDS


def _is_intact(one: Collected) -> bool:
    return _has_hash(Path(one.location), one.sha256)


def _has_hash(file: Path, sha256: str) -> bool:
    try:
        return sha256_of(file) == sha256
    except OSError:
        return False
