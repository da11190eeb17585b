"""Registers models with ComfyDeploy, the service that generates images with them: start, poll, retry."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.delivery.comfydeploy import Download
from stationmaster.errors import DeliveryError
from stationmaster.event_log import get_logger
from stationmaster.model import Registering, Registration, TrainedModel
from stationmaster.model.catalogue import BUCKET, HUB

log = get_logger("stationmaster.registering")

_LINK_SECONDS = 24 * 3600.0
_LOOK_SECONDS = 5.0
_OWN_SECONDS = 120.0  # the job itself has the first try; should its worker die, another one continues later
_MOST_TRIES = 12
_LONGEST_RETRY_SECONDS = 6 * 3600.0

PRIVATE = "not registered: private, no bucket"


def first_registration(model: TrainedModel, policy: Policy, *, now: float) -> Registration:
    """What is to be done about a model that is new in the catalogue."""
    if not policy.comfydeploy.is_on:
        return Registration()
    if not model.complete and not policy.comfydeploy.incomplete:
        return Registration(note="not registered: incomplete")
    hub = model.place(HUB)
    if model.place(BUCKET) is not None or (hub is not None and hub.public):
        return Registration(state=Registering.DUE, due_at=now + _OWN_SECONDS)
    return Registration(note=PRIVATE if hub is not None else "not registered: not published")


async def has_registrations(world: World) -> bool:
    return bool(await world.ask_store(world.store.models.to_register))


async def continue_registrations(world: World) -> None:
    """Take every registration that is due one step further, those that their job left open included."""
    store, ask = world.store, world.ask_store
    for model in await ask(store.models.to_register):
        now, retry = await ask(store.now), world.policy.comfydeploy.retry
        after = await continue_registration(model, world.destinations, retry_seconds=retry, now=now)
        log.info("registering.step", model=model.slug, state=after.registration.state, note=after.registration.note)
        await ask(store.models.put, after)


async def continue_registration(
    model: TrainedModel, destinations: Destinations, *, retry_seconds: float, now: float
) -> TrainedModel:
    """Take the model's registration one step further."""
    assert destinations.comfydeploy is not None, "only models that were to be registered come here"
    known = model.registration
    try:
        if known.state is Registering.DUE:
            await destinations.comfydeploy.start(file_name_of(model), await download_link(model, destinations))
            return _with(model, Registering.STARTED, note=None, due_at=now + _LOOK_SECONDS)
        seen = await destinations.comfydeploy.state(file_name_of(model))
    except DeliveryError as problem:
        return _again(model, str(problem), retry_seconds=retry_seconds, now=now)
    match seen.download:
        case Download.DONE:
            return _with(model, Registering.DONE, note=None, due_at=None)
        case Download.RUNNING:
            return _with(model, Registering.STARTED, note=seen.note, due_at=now + _LOOK_SECONDS)
        case _:
            note = seen.note or "the service no longer knows the model"
            return _again(model, note, retry_seconds=retry_seconds, now=now)


async def download_link(model: TrainedModel, destinations: Destinations) -> str:
    """A link to the weights without credentials, signed anew each time because it expires. Raises DeliveryError."""
    hub, bucket = model.place(HUB), model.place(BUCKET)
    if hub is not None and hub.public and hub.link is not None:
        return f"{hub.link}/resolve/main/{model.file_name}"
    if bucket is None or destinations.bucket is None:
        raise DeliveryError(PRIVATE)
    key = bucket.address.removeprefix(f"{destinations.bucket.bucket.location()}").strip("/")
    return await asyncio.to_thread(destinations.bucket.bucket.sign_get, key, seconds=_LINK_SECONDS)


def file_name_of(model: TrainedModel) -> str:
    """Its name there, unique among our models."""
    return f"{model.slug}.safetensors"


def _with(model: TrainedModel, state: Registering, *, note: str | None, due_at: float | None) -> TrainedModel:
    return replace(model, registration=replace(model.registration, state=state, note=note, due_at=due_at))


def _again(model: TrainedModel, problem: str, *, retry_seconds: float, now: float) -> TrainedModel:
    tries = model.registration.tries + 1
    if tries >= _MOST_TRIES:
        given_up = Registration(note=f"not registered: given up after {tries} tries: {problem}", tries=tries)
        return replace(model, registration=given_up)
    pause = min(retry_seconds * 2 ** (tries - 1), _LONGEST_RETRY_SECONDS)
    later = Registration(state=Registering.DUE, note=problem, due_at=now + pause, tries=tries)
    return replace(model, registration=later)
