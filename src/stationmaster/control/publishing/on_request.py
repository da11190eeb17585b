"""Commands on models of the catalogue: publish one that is stored locally, download one that is elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.publishing.cards import card_of, licence_of
from stationmaster.control.publishing.chain import hub_place
from stationmaster.control.publishing.samples import sample_names
from stationmaster.delivery.artifact_store import FolderArtifacts
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient
from stationmaster.delivery.model_card import Sample, render_card
from stationmaster.delivery.verified_write import Progress
from stationmaster.errors import IllegalMove, NotFound
from stationmaster.files import sha256_of
from stationmaster.model import Place, TrainedModel
from stationmaster.model.catalogue import BUCKET, HOME, HUB


async def publish_from_home(model: TrainedModel, hub: HubClient) -> TrainedModel:
    """Publish the model with its samples and card, and verify it. Repeating it sends only what is missing."""
    home = model.place(HOME)
    if home is None or not await asyncio.to_thread(_is_there, home, model):
        raise IllegalMove(
            f"the weights of {model.slug} are not at home any more",
            hint=f"bring them back: stationmaster models download {model.slug}",
        )
    repo = f"{await hub.namespace()}/{model.slug}"
    await hub.ensure_repository(repo)
    weights = HubFile(name=model.file_name, size=model.size, sha256=model.sha256, path=home.address)
    samples = await asyncio.to_thread(lambda: list(_samples(model)))
    shown = [Sample(url=file.name, text=text) for file, text in samples]
    card = HubFile.of_text("README.md", render_card(card_of(model, shown, await licence_of(model, hub))))
    message = f"{model.name}, job {model.job_id}"
    await _put_missing(repo, weights, hub, message=message)
    for files in ([file for file, _ in samples], [card]):
        if files:
            await hub.require(repo, await hub.put(repo, files, message=message))
    return model.at(hub_place(repo, model.file_name, hub))


async def download(
    model: TrainedModel, target: Path, destinations: Destinations, *, progress: Progress | None = None
) -> Path:
    """Put a verified copy into the folder `target`, from the nearest place that has the weights. Raises NotFound."""
    goal = target / model.file_name
    await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
    if (home := model.place(HOME)) is not None and await asyncio.to_thread(_is_there, home, model):
        weights = Path(home.address)
        near = FolderArtifacts(weights.parent)
        await asyncio.to_thread(near.get, weights.name, goal, sha256=model.sha256, progress=progress)
    elif (bucket := model.place(BUCKET)) is not None and destinations.bucket is not None:
        store, bucket_address = destinations.bucket.artifacts, destinations.bucket.bucket.location()
        key = bucket.address.removeprefix(bucket_address).strip("/")
        await asyncio.to_thread(store.get, key, goal, sha256=model.sha256, progress=progress)
    elif (hub := model.place(HUB)) is not None and destinations.hub is not None:
        await destinations.hub.download(hub.address, goal, sha256=model.sha256, size=model.size, progress=progress)
    else:
        raise not_within_reach(model)
    return goal


def not_within_reach(model: TrainedModel) -> NotFound:
    """The error for a model that is in none of the places that the settings open."""
    places = ", ".join(place.address for place in model.places) or "nowhere"
    return NotFound(
        f"{model.slug} cannot be downloaded from here; it is at: {places}",
        hint="set the bucket or the Hub that holds it (bucket.…, hub.publish and HF_TOKEN)",
    )


async def _put_missing(repo: str, weights: HubFile, hub: HubClient, *, message: str) -> None:
    found = await hub.read_back(repo, [weights.name])
    if not weights.is_at(found.get(weights.name)):
        await hub.upload(repo, [weights], message=message)
        await hub.require(repo, [weights])


def _samples(model: TrainedModel) -> Iterator[tuple[HubFile, str]]:
    there = [preview for preview in model.previews if Path(preview.path).is_file()]
    for preview, name in zip(there, sample_names([preview.path for preview in there]), strict=True):
        path = Path(preview.path)
        yield HubFile(name=name, size=path.stat().st_size, sha256=sha256_of(path), path=preview.path), preview.text


def _is_there(place: Place, model: TrainedModel) -> bool:
    path = Path(place.address)
    return path.is_file() and path.stat().st_size == model.size
