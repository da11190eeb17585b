"""The catalogue in the store; publishing and downloading run to the end here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from stationmaster.control.destinations.destinations import Destinations, open_hub
from stationmaster.control.destinations.job_bucket import open_job_bucket
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.publishing.on_request import download, not_within_reach, publish_from_home
from stationmaster.control.publishing.registering import first_registration
from stationmaster.datasets.sources.reference import BucketReference, parse_reference
from stationmaster.errors import NotFound, TransferFailed
from stationmaster.model import Registering, TrainedModel
from stationmaster.model.catalogue import BUCKET, HOME, HUB
from stationmaster.settings import Settings
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.stored_files import bucket_file, hub_file, local_file
from stationmaster.station.local.wrong_names import no_such_model
from stationmaster.station.models import ModelCursor
from stationmaster.station.stored_file import Progress, StoredFile
from stationmaster.store.store import Store


class _About(TypedDict):
    name: str
    size: int
    sha256: str


class LocalModels:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._store = installation.store

    def listed(
        self, *, owner: str | None = None, limit: int = 1000, after: ModelCursor | None = None
    ) -> Sequence[TrainedModel]:
        return self._store.models.listed(owner=owner, limit=limit, after=after)

    def find(self, reference: str, *, owner: str | None = None) -> TrainedModel:
        found = self._store.models.matching(reference, owner=owner)
        if not found:
            raise no_such_model(self._store, reference, owner=owner)
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

    def file(self, reference: str) -> StoredFile:
        model = self.find(reference)
        about: _About = {"name": model.file_name, "size": model.size, "sha256": model.sha256}
        if (home := model.place(HOME)) is not None:
            try:
                return local_file(Path(home.address), **about)
            except (NotFound, TransferFailed):
                if len(model.places) == 1:
                    raise
        if (bucket := model.place(BUCKET)) is not None and self._settings.bucket.access_key is not None:
            source = parse_reference(bucket.address)
            if isinstance(source, BucketReference):
                return bucket_file(source, self._settings, **about)
        if (hub := model.place(HUB)) is not None and self._settings.hf_token is not None:
            return hub_file(hub.address, self._settings, **about)
        raise not_within_reach(model)

    def download(self, reference: str, target: Path, *, progress: Progress | None = None) -> Path:
        """Copy the model to the folder and verify it. Raises NotFound, DeliveryError, TransferFailed, UserError."""
        with user_errors_of_files("choose a folder that you can write to"):
            return asyncio.run(_download(self.find(reference), target, self._settings, self._store, progress))


async def _publish(model: TrainedModel, settings: Settings) -> TrainedModel:
    hub = open_hub(settings)
    try:
        return await publish_from_home(model, hub)
    finally:
        await hub.close()


async def _download(
    model: TrainedModel, target: Path, settings: Settings, store: Store, progress: Progress | None
) -> Path:
    hub = open_hub(settings) if settings.hf_token is not None else None
    destinations = Destinations(hub=hub, bucket=open_job_bucket(settings, store))
    try:
        return await download(model, target, destinations, progress=progress)
    finally:
        await destinations.close()
