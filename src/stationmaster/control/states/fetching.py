"""FETCHING_RESULTS: the training is over. Its files are brought home one by one, each verified before the next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stationmaster.control.delivering import notes
from stationmaster.control.delivering.chain import Deliver, deliver, file_facts
from stationmaster.control.policy import Policy
from stationmaster.control.rental.company import company
from stationmaster.control.rental.machine import ANSWERING, Fate, Sighting, drop_connection, host_of, missed, sight
from stationmaster.control.rental.revive import Revive, needs_reviving, revive
from stationmaster.control.states.executing import checkpoint_of
from stationmaster.control.step import (
    Handler,
    Step,
    cut_off,
    failed_try,
    give_up,
    go_on,
    is_late,
    recovered,
    wait,
    wants_out,
)
from stationmaster.control.training.carrying import metered
from stationmaster.control.training.collecting import at_home, collected, with_fetched, with_places
from stationmaster.control.training.job_folder import stays_inside
from stationmaster.control.world import Visit, World
from stationmaster.errors import DiskFull, RemoteError, Unreachable
from stationmaster.lifecycle import Move, may_try_again
from stationmaster.model import Checkpoint, Desired, Job, Reason
from stationmaster.recipes.schema import OutputKind
from stationmaster.remote.host import OutputFile
from stationmaster.remote.transfer import pull_verified
from stationmaster.store.writes import Told, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    visit: Visit
    sighting: Sighting = ANSWERING


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeInventory:
    """Ask the machine for every declared output with its hash, and write down what is wanted of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Bring one file home; one that is there with the right hash already is not fetched again."""

    file: OutputFile


async def observe(visit: Visit, world: World) -> Seen:
    if visit.job.unreachable_since is None:
        return Seen(visit=visit)
    return Seen(visit=visit, sighting=await sight(visit, world))


def decide(seen: Seen, policy: Policy) -> Step[TakeInventory | Deliver | Fetch | Revive]:
    job, now = seen.visit.job, seen.visit.now
    if job.desired is Desired.CANCEL:
        said = "cancelled while the results were fetched"
        return Step(write=give_up(job, Reason.CANCELLED_BY_USER, now=now, explanation=said))
    if seen.sighting.fate is Fate.GONE:
        return Step(write=without_the_rest(job, Reason.MACHINE_LOST, "the machine was gone", now=now))
    if seen.sighting.fate is Fate.MISSING:
        return Step(write=wait(missed(job, seen.sighting), policy.provider_look_seconds))
    if _time_is_over(job, now=now, policy=policy) and job.memory.get("failures"):
        return Step(write=without_the_rest(job, Reason.HARD_LIMIT, "the limit was reached", now=now))
    if needs_reviving(seen.sighting, job):
        return Step(then=Revive(sighting=seen.sighting))
    if "wanted" not in job.memory:
        return Step(then=TakeInventory())
    if not job.memory["wanted"]:
        return Step(write=_all_safe(job, now=now))
    file = OutputFile(**job.memory["wanted"][0])
    if file.kind == OutputKind.CHECKPOINT:
        if (link := notes.next_link(job, policy.links)) is not None:
            return Step(then=Deliver(link=link, file=file))
        if notes.places(job) and not policy.keep_local:
            return Step(write=wait(job.remember(wanted=job.memory["wanted"][1:]), 0.0))
    return Step(then=Fetch(file=file))


def wanted(files: Iterable[OutputFile], job: Job, checkpoints: Sequence[Checkpoint]) -> list[OutputFile]:
    """The model first, then what explains it. Of several checkpoints only the best: the final one, else the latest."""
    files = [file for file in files if stays_inside(file.path)]
    by_path = {checkpoint.path: checkpoint for checkpoint in checkpoints}
    models = [file for file in files if file.kind == OutputKind.CHECKPOINT]
    others = [file for file in files if file.kind != OutputKind.CHECKPOINT]
    sound = [file for file in models if not is_spoilt(by_path.get(file.path), job)]
    return [*best(sound or models, by_path)[:1], *sorted(others, key=lambda file: file.path)]


def is_spoilt(checkpoint: Checkpoint | None, job: Job) -> bool:
    """Whether it was saved when the loss had become no number; what was saved before is worth more."""
    spoilt_at = job.memory.get("spoilt_at")
    return spoilt_at is not None and checkpoint is not None and (checkpoint.step or 0) >= spoilt_at


def best(models: Iterable[OutputFile], checkpoints: dict[str, Checkpoint]) -> list[OutputFile]:
    """Models from best to worst: one without a step in its name is final; else the later step is the better one."""

    def rank(file: OutputFile) -> tuple[bool, int, float]:
        step = checkpoints[file.path].step if file.path in checkpoints else None
        return (step is None, step or 0, file.mtime)

    return sorted(models, key=rank, reverse=True)


def _time_is_over(job: Job, *, now: float, policy: Policy) -> bool:
    """The hard limit leaves the fetch its own time: a model is worth more than some minutes of rent."""
    if now - job.state_since < policy.fetch_seconds:
        return False
    return job.deadline_at is not None and now >= job.deadline_at


def without_the_rest(job: Job, reason: Reason, why: str, *, now: float) -> Write:
    """Nothing more can be had from the machine: with the model safe the job goes on, else the attempt is lost."""
    if job.memory.get("model_attempt") == job.attempt:
        told = Told(kind="results_incomplete", payload={"problem": f"{why} before everything was fetched"})
        return replace(_all_safe(job, now=now), events=(told, *_all_safe(job, now=now).events))
    return give_up(job, reason, now=now, explanation=f"{why} before a model was saved from the machine{at_home(job)}")


def _all_safe(job: Job, *, now: float) -> Write:
    done = job.remember(wanted=None, transfer=None, absences=None, gone_read_at=None)
    ending = _ending_of_a_bid(done, now=now) if job.memory.get("ending") == Reason.OUTBID.value else None
    if ending is Reason.OUTBID:
        said = f"a higher bid stopped the machine; what was on it was fetched{at_home(done)}"
        return give_up(done, Reason.OUTBID, now=now, explanation=said)
    return go_on(done.remember(ending=ending.value) if ending else done, Move.MODEL_SAFE, now=now)


def _ending_of_a_bid(job: Job, *, now: float) -> Reason:
    """A training that was cut short by a higher bid goes on in a further attempt, unless nothing may follow."""
    if wants_out(job):
        return Reason.STOPPED_BY_USER
    if is_late(job, now=now):
        return Reason.HARD_LIMIT
    has_model = job.memory.get("model_attempt") == job.attempt
    return Reason.MACHINE_STOPPED if has_model and not may_try_again(job, Reason.OUTBID) else Reason.OUTBID


async def perform(action: TakeInventory | Deliver | Fetch | Revive, job: Job, seen: Seen, world: World) -> Write:
    if isinstance(action, Revive):
        return await revive(action, job, seen.visit, world)
    try:
        async with company(host_of(job, world), seen.visit):
            if isinstance(action, TakeInventory):
                return await _take_inventory(job, world)
            if isinstance(action, Deliver):
                checkpoint = checkpoint_of(job, action.file, world.recipe(job.spec.recipe).recipe.outputs)
                return await deliver(action, job, checkpoint, seen.visit, world)
            return await _fetch(action.file, job, seen, world)
    except Unreachable as problem:
        await drop_connection(job, world)
        return cut_off(job, now=seen.visit.now, policy=world.policy, problem=str(problem))
    except (RemoteError, DiskFull) as problem:
        after, seconds, failures = failed_try(job, world.policy)
        told = () if failures else (Told(kind="fetch_failed", payload={"problem": str(problem)}),)
        return wait(after, seconds, events=told)


async def _take_inventory(job: Job, world: World) -> Write:
    outputs = world.recipe(job.spec.recipe).recipe.outputs
    host = host_of(job, world)
    if job.memory.get("unstopped"):
        await host.stop(world.recipe(job.spec.recipe).recipe.stop.grace)
    files = await host.inventory()
    checkpoints = tuple(with_places((checkpoint_of(job, file, outputs) for file in files), job))
    chosen = [_as_memory(file) for file in wanted(files, job, checkpoints)]
    return wait(recovered(job).remember(wanted=chosen, unstopped=None), 0.0, checkpoints=checkpoints)


async def _fetch(file: OutputFile, job: Job, seen: Seen, world: World) -> Write:
    assert file.sha256 is not None
    target = world.artifacts(job.id) / file.path
    await asyncio.to_thread(_take_collected, file, job, target)
    async with metered(job, seen.visit, "fetching") as progress:
        await pull_verified(host_of(job, world), file.path, target, file.sha256, progress=progress)
    outputs = world.recipe(job.spec.recipe).recipe.outputs
    safe = replace(checkpoint_of(job, file, outputs), location=str(target), verified_at=seen.visit.now)
    after = recovered(job).remember(wanted=job.memory["wanted"][1:], transfer=None)
    told: tuple[Told, ...] = ()
    if safe.kind == OutputKind.CHECKPOINT:
        after = after.remember(
            model=str(target), model_step=safe.step, model_attempt=job.attempt, model_file=file_facts(file)
        )
        if job.memory.get("ending") == Reason.OUTBID.value:
            after = await with_fetched(after, safe, file, world)
        payload = {"path": file.path, "location": str(target), "sha256": file.sha256, "size": file.size}
        told = (Told(kind="model_safe", payload=payload),)
    return wait(after, 0.0, checkpoints=(safe,), events=told)


def _take_collected(file: OutputFile, job: Job, target: Path) -> None:
    """Bytes that were collected during the training are not fetched again; whether they are equal is checked after."""
    same = next((one for one in collected(job) if (one.path, one.sha256) == (file.path, file.sha256)), None)
    if same is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        target.hardlink_to(same.location)


def _as_memory(file: OutputFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "size": file.size,
        "mtime": file.mtime,
        "sha256": file.sha256,
    }


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
