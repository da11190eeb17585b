"""A model in the bucket or on the Hub is looked at there by home itself, by a few bytes; what is none goes again."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
from collections.abc import Callable, Iterator

import pytest

from stationmaster.control.destinations.destinations import Outlets
from stationmaster.control.destinations.job_bucket import bucket_key
from stationmaster.control.destinations.places import BUCKET, HUB
from stationmaster.control.publishing.checked_models import require_model
from stationmaster.delivery.huggingface import HubClient
from stationmaster.errors import BrokenModel
from stationmaster.model import Place
from stationmaster.remote.fake_run import safetensors_bytes
from stationmaster.remote.host import OutputFile
from tests.integration.tickets.conftest import OpenShelf
from tests.support.jobs.spine_values import job
from tests.support.servers.hub_server import HUB_TOKEN, HubServer

PATH = "output/cats.safetensors"
MODEL = safetensors_bytes(7)
TRICKS = [
    pickle.dumps([0.5] * 100),
    b"",
    MODEL[:-1],
    MODEL + b"\0",
    (2**40).to_bytes(8, "little") + b"{}",
    (200_000).to_bytes(8, "little") + b"[" * 200_000,
    MODEL.replace(b"[2]", b"[3]"),
]


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def named(content: bytes) -> OutputFile:
    sha256 = hashlib.sha256(content).hexdigest()
    return OutputFile(path=PATH, kind="checkpoint", size=len(content), mtime=0.0, sha256=sha256)


def checked(content: bytes, place: Place, outlets: Callable[[], Outlets]) -> None:
    async def look() -> None:
        opened = outlets()
        try:
            await require_model(named(content), place, job(), opened)
        finally:
            if opened.hub is not None:
                await opened.hub.close()

    asyncio.run(look())


def on_hub(hub: HubServer, content: bytes) -> tuple[Place, Callable[[], Outlets]]:
    hub.add_repo("anna/cats", private=True, files={"cats.safetensors": content})
    place = Place(kind=HUB, address="hf://anna/cats/cats.safetensors")
    return place, lambda: Outlets(hub=HubClient(url=hub.url, token=HUB_TOKEN, namespace="anna", private=True))


@pytest.mark.parametrize("content", TRICKS)
def test_on_the_hub_a_file_that_only_bears_the_name_is_no_model_and_is_removed(hub: HubServer, content: bytes) -> None:
    place, outlets = on_hub(hub, content)
    with pytest.raises(BrokenModel):
        checked(content, place, outlets)
    assert hub.content("anna/cats", "cats.safetensors") is None


def test_on_the_hub_a_model_stays(hub: HubServer) -> None:
    place, outlets = on_hub(hub, MODEL)
    checked(MODEL, place, outlets)
    assert hub.content("anna/cats", "cats.safetensors") == MODEL


@pytest.mark.parametrize("content", [MODEL, *TRICKS])
def test_in_the_bucket_likewise(open_shelf: OpenShelf, content: bytes) -> None:
    shelf = open_shelf()
    key = bucket_key(job(), PATH)
    shelf.bucket.put(key, content, sha256=hashlib.sha256(content).hexdigest())
    place = Place(kind=BUCKET, address=shelf.bucket.location(key))
    if content == MODEL:
        checked(content, place, lambda: Outlets(shelf=shelf))
    else:
        with pytest.raises(BrokenModel):
            checked(content, place, lambda: Outlets(shelf=shelf))
    assert (shelf.bucket.head(key) is not None) is (content == MODEL)
