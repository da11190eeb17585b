"""The catalogue in the store; publishing and downloading run to the end here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stationmaster.control.destinations.destinations import Destinations, open_hub
from stationmaster.control.destinations.job_bucket import open_job_bucket
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.publishing.on_request import download, publish_from_home
from stationmaster.control.publishing.registering import first_registration
from stationmaster.errors import NotFound
from stationmaster.model import Registering, TrainedModel
from stationmaster.settings import Settings
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.local.installation import Installation
from stationmaster.store.store import Store


class LocalModels:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._store = installation.store

    def listed(self) -> Sequence[TrainedModel]:
        return self._store.models.listed()

    def find(self, reference: str) -> TrainedModel:
        found = self._store.models.matching(reference)
        if not found:
            raise NotFound(f"there is no model {reference}", hint="run `stationmaster models list` to see them")
        if len(found) > 1:
            slugs = ", ".join(model.slug for model in found[:5])
            raise NotFound(f"{reference} matches {len(found)} models", hint=f"choose one of: {slugs}")
        return found[0]

    def publish(self, reference: str) -> TrainedModel:
        """Publish the model and update the catalogue. Raises ConfigInvalid without a token, DeliveryError."""
        published = asyncio.run(_publish(self.find(reference), self._settings))
        if published.registration.state is Registering.NO:
            due = first_registration(published, policy_of(self._settings), now=self._store.now())
            published = replace(published, registration=due)
        self._store.models.put(published)
        return published

    def download(self, reference: str, target: Path) -> Path:
        """Copy the model to the folder and verify it. Raises NotFound, DeliveryError, TransferFailed, UserError."""
        with user_errors_of_files("choose a folder that you can write to"):
            return asyncio.run(_download(self.find(reference), target, self._settings, self._store))


async def _publish(model: TrainedModel, settings: Settings) -> TrainedModel:
    hub = open_hub(settings)
    try:
        return await publish_from_home(model, hub)
    finally:
        await hub.close()


async def _download(model: TrainedModel, target: Path, settings: Settings, store: Store) -> Path:
    hub = open_hub(settings) if settings.hf_token is not None else None
    destinations = Destinations(hub=hub, bucket=open_job_bucket(settings, store))
    try:
        return await download(model, target, destinations)
    finally:
        await destinations.close()
