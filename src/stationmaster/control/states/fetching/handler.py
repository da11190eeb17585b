"""FETCHING_RESULTS: the training is over. Its files are downloaded one by one, each verified before the next.

A model counts once it opens: of several checkpoints the best that does. If the model cannot be downloaded in time, the
machine is stopped and keeps its disk, and the user decides.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stationmaster.control.flow.kept_checkpoints import checkpoint_note
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import (
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
    with_fault,
)
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import drop_connection, host_of
from stationmaster.control.machine.closing_time import (
    action_limit,
    closing_begun,
    closing_counted,
    closing_if_due,
    fetch_is_over,
    fetch_limit,
    is_stopped_for_good,
    look_is_due,
    stop_limit,
)
from stationmaster.control.machine.keepalive import keepalive, unwritable_noted
from stationmaster.control.machine.letting_go import is_only_left
from stationmaster.control.machine.parking import (
    Park,
    costs_as_seen,
    is_asked_again,
    park,
    parked,
    taken_up_again,
    while_parked,
)
from stationmaster.control.machine.revive import Revive, needs_reviving, revive
from stationmaster.control.machine.sight import ANSWERING, Fate, Sighting, missed, sight
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.control.publishing.chain import Deliver, deliver, not_delivered
from stationmaster.control.results.analysing import analysed_meanwhile, analysis_is_due
from stationmaster.control.results.checkpoint_collection import keep_fetched, with_locations
from stationmaster.control.results.declared_files import checkpoint_of, declared, left_out_events, refused_events
from stationmaster.control.results.job_folder import arriving, fetched_path
from stationmaster.control.results.transfer_progress import report_progress
from stationmaster.control.states.fetching.false_files import may_be_an_accident, without_false_file
from stationmaster.control.states.fetching.wanted_files import (
    further_checkpoints,
    ranked_models,
    steady_files,
    wanted_files,
    within_cap,
)
from stationmaster.delivery.safetensors_header import open_safetensors
from stationmaster.errors import (
    BrokenModel,
    CommandFailed,
    DeliveryRefused,
    DiskFull,
    MachineFault,
    RemoteError,
    TransferFailed,
    Unreachable,
)
from stationmaster.lifecycle import CONTINUED, PARKED, Move, is_parked, may_try_again
from stationmaster.model import Checkpoint, CostLine, Desired, Fetching, Job, OutputFile, Reason, Rental
from stationmaster.model.copying import changed
from stationmaster.providers.base import CanStop
from stationmaster.recipes.outputs import is_safe_to_load
from stationmaster.recipes.schema import OutputKind, Recipe
from stationmaster.remote.host import FileHash
from stationmaster.remote.transfer import pull_verified
from stationmaster.store.writes import NewEvent, Write

_WHY_INTERRUPTED = {
    Reason.OUTBID: "a higher bid stopped the machine",
    Reason.MACHINE_FAULT: "the machine's answers were false",
}
_SPARE_MODELS = 8  # further checkpoints to try if the best one does not open


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingView:
    visit: Visit
    sighting: Sighting = ANSWERING
    costs: tuple[CostLine, ...] = ()
    can_stop: bool = False  # whether the provider keeps the disk of a stopped machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeInventory:
    """Ask the machine for every declared output with its hash, and record which files to download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Download one file, unless it is here already with the right hash."""

    file: OutputFile
    is_further: bool = False  # a checkpoint beside the model


Action = TakeInventory | Deliver | Fetch | Revive | Park


async def observe(visit: Visit, world: World) -> FetchingView:
    job = visit.job
    view = FetchingView(visit=visit, can_stop=isinstance(world.provider(job.spec.provider), CanStop))
    is_due = look_is_due(job, world.policy, now=visit.now)
    if job.unreachable_since is None and not is_due and not is_parked(job):
        return view
    _, costs = await world.bills.of(job.id)
    return changed(view, sighting=await sight(visit, world), costs=costs)


def decide(view: FetchingView, policy: Policy) -> Step[Action]:
    now = view.visit.now
    job = closing_counted(closing_if_due(view.visit.job, now=now), view.sighting, policy, now=now)
    costs = costs_as_seen(view.costs, view.sighting, now=now)
    step = _next(job, view, policy)
    if step.write is not None:
        return changed(step, write=changed(step.write, costs=(*step.write.costs, *costs)))
    if job is view.visit.job and not costs:
        return step
    return changed(step, write=Write(job=job, costs=costs))


def _next(job: Job, view: FetchingView, policy: Policy) -> Step[Action]:
    now = view.visit.now
    if job.desired is Desired.CANCEL:
        explanation = "cancelled while downloading the results"
        return Step(write=give_up(job, Reason.CANCELLED_BY_USER, now=now, explanation=explanation))
    if is_parked(job):
        return _parked_step(job, view, policy)
    if view.sighting.fate is Fate.GONE:
        return Step(write=finish_incomplete(job, Reason.MACHINE_LOST, "the machine was gone", now=now))
    if view.sighting.fate is Fate.MISSING:
        return Step(write=wait(missed(job, view.sighting), policy.provider_look_seconds))
    # A machine that cannot be stopped is one of our own and costs nothing: it is given up only at the limit.
    if fetch_is_over(job, policy) and (view.can_stop or is_late(job, now=now)):
        return Step(write=_out_of_time(job, view, policy))
    if is_stopped_for_good(job, policy):
        problem = "the machine was stopped and could not be started again"
        return Step(write=_stop_fetching(job, problem, policy, now=now))
    if needs_reviving(view.sighting, job):
        return Step(then=Revive(sighting=view.sighting))
    wanted = job.fetching.wanted
    if wanted is None:
        return Step(then=TakeInventory())
    if not wanted and view.can_stop and _found_no_model(job):
        again = changed(job, fetching=changed(job.fetching, wanted=None))
        problem = f"no model was found below {_output_of(job)} although the training is over"
        return Step(write=parked(again, problem, policy, now=now))
    if not wanted and job.fetching.further_checkpoints and not _is_kept_elsewhere(job, policy):
        return Step(then=Fetch(file=job.fetching.further_checkpoints[0], is_further=True))
    if not wanted:
        return Step(write=_all_fetched(job, now=now))
    file = wanted[0]
    if file.kind == OutputKind.CHECKPOINT:
        # No signed address goes to a machine that is somebody's own: its files are downloaded.
        links = policy.links if job.spec.adopted is None else ()
        if (link := notes.next_link(job, links)) is not None:
            return Step(then=Deliver(link=link, file=file))
        if _is_kept_elsewhere(job, policy):
            return Step(write=wait(_without_first(job), 0.0))
    return Step(then=Fetch(file=file))


def _is_kept_elsewhere(job: Job, policy: Policy) -> bool:
    """Whether the model was delivered and is not wanted here as well."""
    return bool(notes.places(job)) and not policy.artifacts.keep_local


def _found_no_model(job: Job) -> bool:
    """Whether an adopted training ended and left nothing where its files were expected: that folder may be the wrong
    one, and the right one must not be destroyed with the machine.
    """
    is_over = job.ending.reason in (Reason.FINISHED, Reason.STEP_FAILED)
    is_adopted = job.spec.adopted is not None and job.spec.adopted.release
    return is_adopted and is_over and not job.has_model_of_attempt and not job.collection.checkpoints


def _output_of(job: Job) -> str:
    assert job.spec.adopted is not None
    return job.spec.adopted.output or "its output folder, which was not named,"


def _parked_step(job: Job, view: FetchingView, policy: Policy) -> Step[Action]:
    if is_asked_again(job):
        again = closing_begun(taken_up_again(job), now=view.visit.now)
        # The machine is stopped: the next visit looks for it at the provider.
        again = changed(again, unreachable_since=view.visit.now)
        return Step(write=wait(again, 0.0, rentals=_running_again(view.sighting), cleared_alerts=(PARKED,)))
    comes_next = while_parked(job, view.sighting, policy, can_stop=view.can_stop, now=view.visit.now)
    return Step(then=comes_next) if isinstance(comes_next, Park) else Step(write=comes_next)


def _running_again(sighting: Sighting) -> tuple[Rental, ...]:
    """The rental as the sweep should see it: its machine is no longer stopped."""
    return () if sighting.rental is None else (changed(sighting.rental, stopped_at=None),)


def _out_of_time(job: Job, view: FetchingView, policy: Policy) -> Write:
    """The time for downloads is over. A machine that cannot be stopped with its disk kept has to be given up."""
    problem = _why_not_downloaded(job)
    if not view.can_stop and not job.has_model_of_attempt:
        explanation = f"{problem}, and the job's limit was reached{checkpoint_note(job)}"
        return give_up(job, Reason.FETCH_FAILED, now=view.visit.now, explanation=explanation)
    return _stop_fetching(job, problem, policy, now=view.visit.now)


def _why_not_downloaded(job: Job) -> str:
    """What was tried in vain, for the person who decides about the machine."""
    tries, problem = job.setbacks.failures, job.setbacks.problem
    if problem is None:
        return "the model could not be downloaded: it had not arrived when the time for downloads was over"
    return f"the model could not be downloaded{f' in {tries} tries' if tries > 1 else ''}: {problem}"


def _stop_fetching(job: Job, why: str, policy: Policy, *, now: float) -> Write:
    """With the model safe the job continues without the rest; else the machine is stopped, or stays so, with it."""
    if job.has_model_of_attempt:
        return finish_incomplete(job, Reason.FETCH_FAILED, "the time for downloads was over", now=now)
    return parked(job, why, policy, now=now)


def finish_incomplete(job: Job, reason: Reason, why: str, *, now: float) -> Write:
    """Nothing more can be downloaded: with the model safe the job continues, else the attempt is lost."""
    if job.has_model_of_attempt:
        event = NewEvent(kind="results_incomplete", payload={"problem": f"{why} before all files were downloaded"})
        return changed(_all_safe(job, now=now), events=(event, *_all_safe(job, now=now).events))
    return give_up(job, reason, now=now, explanation=f"{why} before a model was downloaded{checkpoint_note(job)}")


def _all_fetched(job: Job, *, now: float) -> Write:
    """All files are here. Without a model because those of the machine were false, the attempt was in vain."""
    if job.machine.fault is not None and not job.has_model_of_attempt and job.ending.reason is not Reason.MACHINE_FAULT:
        explanation = f"the machine's files are false: {job.machine.fault}{checkpoint_note(job)}"
        return give_up(job, Reason.MACHINE_FAULT, now=now, explanation=explanation)
    return _all_safe(job, now=now)


def _all_safe(job: Job, *, now: float) -> Write:
    machine = changed(job.machine, transfer=None, absences=0, gone_read_at=None)
    done = changed(job, fetching=changed(job.fetching, wanted=None), machine=machine)
    interrupted = job.ending.reason if job.ending.reason in CONTINUED else None
    ending = job.ending.reason if interrupted is None else _ending_of(interrupted, done, now=now)
    if ending is not None and ending is interrupted:
        explanation = f"{_WHY_INTERRUPTED[ending]}; its files were downloaded{checkpoint_note(done)}"
        return give_up(done, ending, now=now, explanation=explanation)
    return go_on(changed(done, ending=changed(done.ending, reason=ending)), Move.MODEL_SAFE, now=now)


def _ending_of(interrupted: Reason, job: Job, *, now: float) -> Reason:
    """An interrupted training continues in a further attempt, unless none is allowed."""
    if wants_out(job):
        return Reason.STOPPED_BY_USER
    if is_late(job, now=now):
        return Reason.HARD_LIMIT
    is_over = job.has_model_of_attempt and not may_try_again(job, interrupted)
    return Reason.MACHINE_STOPPED if is_over else interrupted


async def perform(action: Action, job: Job, view: FetchingView, world: World) -> Write:
    work = _perform(action, job, view, world)
    if isinstance(action, TakeInventory) and analysis_is_due(job, view.visit):
        return await analysed_meanwhile(work, job, view.visit, world)
    return await work


async def _perform(action: Action, job: Job, view: FetchingView, world: World) -> Write:
    match action:
        case Revive():
            return await revive(action, job, view.visit, world)
        case Park():
            return await park(action, job, world)
    limit = _limit_of(action, job, world.policy) if view.can_stop else None
    try:
        async with asyncio.timeout(limit), keepalive(host_of(job, world), view.visit) as visits:
            write = await _bring_home(action, job, view, world)
        return _with_unwritable(write, visits.unwritten)
    except BrokenModel as problem:
        return _with_the_next_model(job, problem)
    except TimeoutError:
        return _timed_out(action, job, world.policy)
    except Unreachable as problem:
        await drop_connection(job, world)
        return cut_off(job, now=view.visit.now, policy=world.policy, problem=str(problem))
    except MachineFault as problem:
        return _after_fault(action, job, problem, world.policy, now=view.visit.now)
    except (RemoteError, DiskFull) as problem:
        after, seconds, failures = failed_try(job, world.policy, str(problem))
        events = () if failures else (NewEvent(kind="fetch_failed", payload={"problem": str(problem)}),)
        return wait(after, seconds, events=events)


async def _bring_home(action: TakeInventory | Deliver | Fetch, job: Job, view: FetchingView, world: World) -> Write:
    match action:
        case TakeInventory():
            return await _take_inventory(job, view.visit.recipe, world)
        case Deliver():
            checkpoint = checkpoint_of(job, action.file, view.visit.recipe.outputs)
            return await deliver(action, job, checkpoint, view.visit, world)
        case Fetch(is_further=True):
            return await _fetch_further(action.file, job, view, world)
        case Fetch():
            return await _fetch(action.file, job, view, world)


def _with_unwritable(write: Write, problem: str | None) -> Write:
    """The write with the fact that the machine can write nothing, which prevents no download."""
    after, events = unwritable_noted(write.job, problem)
    return changed(write, job=after, events=(*write.events, *events))


async def _take_inventory(job: Job, recipe: Recipe, world: World) -> Write:
    outputs, host = recipe.outputs, host_of(job, world)
    if job.ending.unstopped and not is_only_left(job):
        with suppress(CommandFailed):  # its model can be downloaded anyway
            await host.stop(min(recipe.stop.grace, stop_limit(world.policy)))
    inventory = await host.inventory()
    job, noted = unwritable_noted(job, inventory.unwritten)
    listed = inventory.files
    files = steady_files(declared(listed, outputs))
    checkpoints = tuple(with_locations((checkpoint_of(job, file, outputs) for file in files), job))
    models = ranked_models(files, job, checkpoints)
    artifacts = world.policy.artifacts
    further = further_checkpoints(models, job, checkpoints, keep=artifacts.keep) if artifacts.every > 0 else ()
    wanted, too_large = within_cap(wanted_files(files, job, checkpoints), cap_bytes=artifacts.cap_bytes)
    steps = [one.step for one in checkpoints if one.kind == OutputKind.CHECKPOINT and one.step is not None]
    fetching = Fetching(
        wanted=wanted,
        spare_models=tuple(models[1 : 1 + _SPARE_MODELS]),
        further_checkpoints=tuple(further),
        furthest=max(steps, default=None),
    )
    after = changed(recovered(job), fetching=fetching, ending=changed(job.ending, unstopped=False))
    left_out = left_out_events(inventory.left_out + too_large, cap_bytes=artifacts.cap_bytes)
    return wait(after, 0.0, checkpoints=checkpoints, events=(*noted, *refused_events(listed, outputs), *left_out))


def _with_the_next_model(job: Job, problem: BrokenModel) -> Write:
    """The file is not a model: try the next best. What was downloaded of it stays where it is."""
    assert job.fetching.wanted, "the broken file was the next to download"
    (broken, *rest), spare = job.fetching.wanted, job.fetching.spare_models
    event = NewEvent(kind="model_broken", payload={"path": broken.path, "problem": str(problem)})
    next_best = changed(job.fetching, wanted=(*spare[:1], *rest), spare_models=spare[1:])
    after = changed(recovered(job), fetching=next_best, machine=changed(job.machine, transfer=None))
    return wait(after, 0.0, events=(event,))


def _after_fault(
    action: TakeInventory | Deliver | Fetch, job: Job, problem: MachineFault, policy: Policy, *, now: float
) -> Write:
    """What the machine sent cannot be true. A few times that may be an accident, such as a file that was written again
    since it was hashed; then a false file is left out, and false answers end the attempt.
    """
    after, seconds, _ = failed_try(with_fault(job, str(problem)), policy, str(problem))
    first = () if job.setbacks.faults else (NewEvent(kind="fetch_failed", payload={"problem": str(problem)}),)
    if isinstance(action, Fetch) and not may_be_an_accident(after):
        return without_false_file(after, action.file, problem, is_further=action.is_further)
    if after.machine.fault is not None:
        return finish_incomplete(after, Reason.MACHINE_FAULT, f"the machine's answers were false ({problem})", now=now)
    return wait(changed(after, fetching=Fetching()), seconds, events=first)


def _limit_of(action: TakeInventory | Deliver | Fetch, job: Job, policy: Policy) -> float | None:
    """A destination that never answers leaves time for the next one, and for the download."""
    limit = action_limit(job, policy, until=fetch_limit(policy))
    return limit / len(policy.links) if limit is not None and isinstance(action, Deliver) else limit


def _without_first(job: Job) -> Job:
    """The job without the next file to download."""
    return changed(job, fetching=changed(job.fetching, wanted=(job.fetching.wanted or ())[1:]))


def _timed_out(action: TakeInventory | Deliver | Fetch, job: Job, policy: Policy) -> Write:
    if isinstance(action, Deliver):
        return not_delivered(job, action.link, DeliveryRefused("timed out"), policy)
    what = f"the download of {action.file.path}" if isinstance(action, Fetch) else "the inventory of its files"
    problem = f"{what} timed out"
    after, seconds, failures = failed_try(job, policy, problem)
    events = () if failures else (NewEvent(kind="fetch_failed", payload={"problem": problem}),)
    return wait(after, seconds, events=events)


async def _fetch(file: OutputFile, job: Job, view: FetchingView, world: World) -> Write:
    safe = await _download(file, job, view, world)
    if safe.kind == OutputKind.STATE:
        safe = changed(safe, step=job.fetching.furthest)
    after = _without_first(_progressed(job))
    events: tuple[NewEvent, ...] = ()
    if safe.kind == OutputKind.CHECKPOINT:
        assert safe.location is not None, "it was downloaded"
        after = notes.with_model(after, file, address=safe.location, step=safe.step)
        if job.ending.reason in CONTINUED:
            after = await keep_fetched(after, safe, file, world)
        payload = {"path": file.path, "location": safe.location, "sha256": file.sha256, "size": file.size}
        events = (NewEvent(kind="model_safe", payload=payload),)
    return wait(after, 0.0, checkpoints=(safe,), events=events)


async def _fetch_further(file: OutputFile, job: Job, view: FetchingView, world: World) -> Write:
    """Download a checkpoint beside the model. One that is not sound is left out: the model is safe without it."""
    after = changed(
        _progressed(job), fetching=changed(job.fetching, further_checkpoints=job.fetching.further_checkpoints[1:])
    )
    try:
        safe = await _download(file, job, view, world)
    except TransferFailed as problem:
        return wait(after, 0.0, events=(NewEvent(kind="collect_failed", payload={"problem": str(problem)}),))
    payload = {"path": file.path, "step": safe.step, "size": file.size, "sha256": file.sha256}
    return wait(after, 0.0, checkpoints=(safe,), events=(NewEvent(kind="checkpoint_safe", payload=payload),))


async def _download(file: OutputFile, job: Job, view: FetchingView, world: World) -> Checkpoint:
    """Download and verify one file. Raises BrokenModel for a model that does not open, and RemoteError."""
    assert file.sha256 is not None
    folder = world.artifacts(job.id)
    target = fetched_path(folder, attempt=job.attempt, path=file.path)
    if job.collection.checkpoints:
        await asyncio.to_thread(_take_collected, file, job, target)
    async with report_progress(job, view.visit, "fetching") as progress:
        host = host_of(job, world)
        wanted = FileHash(sha256=file.sha256, size=file.size)
        await pull_verified(host, file.path, target, wanted, parts=arriving(folder), progress=progress)
    if file.kind == OutputKind.CHECKPOINT and is_safe_to_load(file.path):
        await asyncio.to_thread(open_safetensors, target)
    checkpoint = checkpoint_of(job, file, view.visit.recipe.outputs)
    return changed(checkpoint, location=str(target), verified_at=view.visit.now)


def _progressed(job: Job) -> Job:
    return changed(recovered(job), machine=changed(job.machine, transfer=None))


def _take_collected(file: OutputFile, job: Job, target: Path) -> None:
    """Reuse a checkpoint that was downloaded during the training; its hash is checked afterwards."""
    same = next((one for one in job.collection.checkpoints if (one.path, one.sha256) == (file.path, file.sha256)), None)
    if same is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):
        target.hardlink_to(same.location)


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
