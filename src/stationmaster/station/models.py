"""What a person asks of the catalogue's models; what takes a while is waited for here."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from stationmaster.control.delivering.bucket import open_shelf
from stationmaster.control.delivering.later import download, publish_from_home
from stationmaster.control.delivering.outlets import Outlets, open_hub
from stationmaster.control.delivering.places import HOME
from stationmaster.control.delivering.registering import first_registration
from stationmaster.control.policy import policy_of
from stationmaster.model import Registering, TrainedModel
from stationmaster.settings import Settings
from stationmaster.store.store import Store


def publish_model(model: TrainedModel, settings: Settings, store: Store) -> TrainedModel:
    """The model is on the Hub, and so in the catalogue. Raises ConfigInvalid without a token, DeliveryError."""
    published = asyncio.run(_publish(model, settings))
    if published.registration.state is Registering.NO:
        due = first_registration(published, policy_of(settings), now=store.now())
        published = replace(published, registration=due)
    store.models.put(published)
    return published


def download_model(model: TrainedModel, target: Path, settings: Settings, store: Store) -> Path:
    """A verified copy in the folder. Raises NotFound, DeliveryError, TransferFailed."""
    return asyncio.run(_download(model, target, settings, store))


def forget_home(job_id: str, store: Store) -> None:
    """The job's files at home go: a model that lay nowhere else leaves the catalogue with them."""
    model = store.models.of_job(job_id)
    if model is None:
        return
    elsewhere = tuple(place for place in model.places if place.kind != HOME)
    if elsewhere:
        store.models.put(replace(model, places=elsewhere, previews=()))
    else:
        store.models.remove(model.slug)


async def _publish(model: TrainedModel, settings: Settings) -> TrainedModel:
    hub = open_hub(settings)
    try:
        return await publish_from_home(model, hub)
    finally:
        await hub.close()


async def _download(model: TrainedModel, target: Path, settings: Settings, store: Store) -> Path:
    hub = open_hub(settings) if settings.hf_token is not None else None
    outlets = Outlets(hub=hub, shelf=open_shelf(settings, store))
    try:
        return await download(model, target, outlets)
    finally:
        await outlets.close()
