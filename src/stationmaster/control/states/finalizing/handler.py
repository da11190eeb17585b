"""FINALIZING: the model is safe. Publish, catalogue and register it, record each step, then write the outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import Handler, Step, give_up, go_on, outcome_event, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import host_of
from stationmaster.control.machine.closing_time import (
    action_limit,
    closing_counted,
    closing_if_due,
    closing_is_over,
    is_closing,
    look_is_due,
)
from stationmaster.control.machine.keepalive import keepalive
from stationmaster.control.machine.sight import ANSWERING, Sighting, sight
from stationmaster.control.publishing import delivery_notes as notes
from stationmaster.control.publishing.publish import Publishing, entry, next_publishing, publish
from stationmaster.control.publishing.registering import continue_registration, first_registration
from stationmaster.control.results.job_folder import LATEST, MODEL, SUMMARY, keep_only, remove_arriving, replace_link
from stationmaster.control.results.run_facts import facts_to_remember
from stationmaster.errors import RemoteError
from stationmaster.event_log import get_logger
from stationmaster.files import write_atomically
from stationmaster.lifecycle import Move, concluded
from stationmaster.model import CATALOGUED, REGISTERED, Checkpoint, Desired, Job, Reason, Registering
from stationmaster.model.copying import changed
from stationmaster.providers.base import CanStop
from stationmaster.store.writes import NewEvent, Write

log = get_logger("stationmaster.finalizing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """Put the model into the catalogue, with its addresses."""

    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Try to register the model once; the periodic work repeats it later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclude:
    """Put links and summary in place, and write the outcome; repeating it changes nothing."""

    reason: Reason


Action = Publishing | Catalogue | Register | Conclude


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizingView:
    visit: Visit
    sighting: Sighting = ANSWERING
    is_bounded: bool = False  # the machine bills, and the job is to end


async def observe(visit: Visit, world: World) -> FinalizingView:
    is_ending = is_closing(closing_if_due(visit.job, now=visit.now))
    if not is_ending or not isinstance(world.provider(visit.job.spec.provider), CanStop):
        return FinalizingView(visit=visit)
    is_due = look_is_due(visit.job, world.policy, now=visit.now)
    return FinalizingView(visit=visit, sighting=await sight(visit, world) if is_due else ANSWERING, is_bounded=True)


def decide(view: FinalizingView, policy: Policy) -> Step[Action]:
    visit, now = view.visit, view.visit.now
    if visit.job.desired is Desired.CANCEL:
        explanation = "cancelled after the model was downloaded"
        return Step(write=give_up(visit.job, Reason.CANCELLED_BY_USER, now=now, explanation=explanation))
    if not view.is_bounded:
        return Step(then=_next(visit.job, policy))
    job = closing_counted(closing_if_due(visit.job, now=now), view.sighting, policy, now=now)
    is_over = closing_is_over(job, policy.bound_seconds)
    return Step(write=None if job is visit.job else Write(job=job), then=_next(job, policy, is_over=is_over))


def _next(job: Job, policy: Policy, *, is_over: bool = False) -> Action:
    """What comes next; a model that could not be published in time can be published later."""
    reason = final_reason(job)
    publishing = None if is_over else next_publishing(job, reason, policy)
    if publishing is not None:
        return publishing
    if job.model.file is not None and not notes.is_done(job, CATALOGUED):
        return Catalogue(reason=reason)
    if notes.delivery_of(job).register and not notes.is_done(job, REGISTERED):
        return Register()
    return Conclude(reason=reason)


def final_reason(job: Job) -> Reason:
    """Why the training ended; one that finished without a model has failed."""
    if job.desired is Desired.CANCEL_KEEP:
        return Reason.CANCELLED_BY_USER
    ending = job.ending.reason
    assert ending is not None, "a training that ended has a reason"
    if ending is Reason.FINISHED and not job.model.address:
        return Reason.NO_MODEL
    return ending


async def perform(action: Action, job: Job, view: FinalizingView, world: World) -> Write:
    visit = view.visit
    match action:
        case Catalogue():
            return await _catalogue(action.reason, job, visit, world)
        case Register():
            return await _register(job, visit, world)
        case Conclude():
            return await _conclude(action, job, visit, world)
        case _:
            limit = action_limit(job, world.policy, until=world.policy.bound_seconds) if view.is_bounded else None
            async with keepalive(host_of(job, world), visit):
                return await publish(action, job, visit, world, limit_seconds=limit)


async def _catalogue(reason: Reason, job: Job, visit: Visit, world: World) -> Write:
    model = await entry(job, reason, visit.recipe, world, now=visit.now)
    if model is None:
        return wait(notes.with_done(job, CATALOGUED), 0.0)
    model = changed(model, registration=first_registration(model, world.policy, now=visit.now))
    due = model.registration.state is Registering.DUE
    event = NewEvent(kind="catalogued", payload={"model": model.slug, "note": model.registration.note})
    done = notes.with_done(notes.with_delivery(job, changed(notes.delivery_of(job), register=due)), CATALOGUED)
    return wait(done, 0.0, models=(model,), events=(event,))


async def _register(job: Job, visit: Visit, world: World) -> Write:
    model = await world.ask_store(world.store.models.of_job, job.id)
    done = notes.with_done(job, REGISTERED)
    if model is None or model.registration.state is not Registering.DUE:
        return wait(done, 0.0)  # removed, or registered meanwhile
    retry = world.policy.comfydeploy.retry
    after = await continue_registration(model, world.destinations, retry_seconds=retry, now=visit.now)
    event = NewEvent(kind="registration", payload={"state": after.registration.state, "note": after.registration.note})
    return wait(done, 0.0, models=(after,), events=(event,))


async def _conclude(action: Conclude, job: Job, visit: Visit, world: World) -> Write:
    explanation = job.ending.explanation or _explanation(action.reason, job)
    done = concluded(job, action.reason, explanation=explanation)
    await world.ask_store(_put_in_place, world.artifacts(job.id), done)
    run = await facts_to_remember(job, world) if action.reason is Reason.FINISHED else None
    await _acknowledge(job, world)
    gone = await _checkpoints_to_delete(job, world)
    return go_on(done, Move.PUBLISHED, now=visit.now, events=(outcome_event(done),), checkpoints=gone, past_run=run)


async def _checkpoints_to_delete(job: Job, world: World) -> tuple[Checkpoint, ...]:
    """The rows of checkpoints that are deleted here because the model is kept only elsewhere."""
    if "://" not in (job.model.address or ""):
        return ()
    places = {one.location for one in job.collection.checkpoints}
    rows = await world.ask_store(world.store.checkpoints.of_job, job.id) if places else []
    return tuple(changed(row, location=None, verified_at=None) for row in rows if row.location in places)


async def _acknowledge(job: Job, world: World) -> None:
    """Tell the machine's guard that it may destroy the machine; without this it only stops it."""
    if not job.has_model_of_attempt:
        return
    try:
        await host_of(job, world).acknowledge()
    except RemoteError as problem:
        log.info("guard.not_informed", job=job.id, problem=str(problem))


def _explanation(reason: Reason, job: Job) -> str | None:
    kept = "the model is kept" if job.model.address else None
    if job.model.step:
        kept = f"the checkpoint of step {job.model.step} is kept"
    match reason:
        case Reason.NO_MODEL:
            return "the training finished without a model"
        case Reason.HARD_LIMIT:
            return f"the time or money limit was reached; {kept or 'there was no checkpoint to keep'}"
        case Reason.STALLED:
            return f"the training stalled and its grace period expired; {kept or 'there was no checkpoint to keep'}"
        case Reason.ANOMALY:
            found = ", ".join(job.watching.anomalies)
            return f"stopped because of {found}; {kept or 'there was no checkpoint to keep'}"
        case Reason.MACHINE_STOPPED:
            return f"the machine was stopped before the training was done; {kept or 'there was no checkpoint to keep'}"
        case Reason.STOPPED_BY_USER | Reason.CANCELLED_BY_USER:
            return f"stopped on request; {kept or 'there was no checkpoint to keep'}"
        case _:
            return None


def _put_in_place(folder: Path, job: Job) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = job.model.address
    if model and "://" in model:  # kept elsewhere and not wanted here, like its earlier checkpoints
        keep_only(folder, ())
        (folder / LATEST).unlink(missing_ok=True)
    elif model:
        for name in (LATEST, MODEL):
            replace_link(folder / name, Path(model))
    write_atomically(folder / SUMMARY, json.dumps(summary(job), indent=2) + "\n")
    remove_arriving(folder)


def summary(job: Job) -> dict[str, Any]:
    progress = job.progress
    return {
        "job": job.id,
        "name": job.spec.name,
        "recipe": job.spec.recipe,
        "parameters": dict(job.spec.parameters),
        "dataset_sha256": job.spec.dataset.sha256,
        "outcome": job.outcome,
        "reason": job.reason,
        "model": job.model.address,
        "places": [place.address for place in notes.places(job)],
        "steps": progress.step,
        "first_loss": progress.first_loss,
        "last_loss": progress.finite_loss,
    }


HANDLER = Handler(observe=observe, decide=decide, perform=perform)
