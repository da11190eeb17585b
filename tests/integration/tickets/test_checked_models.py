"""A model in the bucket or on the Hub is looked at there by home itself, by a few bytes; what is none goes again."""

from __future__ import annotations

import asyncio
import hashlib
import pickle
from collections.abc import Callable, Iterator

import pytest

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.destinations.job_bucket import bucket_key
from stationmaster.control.publishing.chain import require_model
from stationmaster.delivery.huggingface import HubClient
from stationmaster.errors import BrokenModel
from stationmaster.model import OutputFile, Place
from stationmaster.model.catalogue import BUCKET, HUB
from stationmaster.remote.fake_run import safetensors_bytes
from tests.integration.tickets.conftest import OpenJobBucket
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


def checked(content: bytes, place: Place, destinations: Callable[[], Destinations]) -> None:
    async def look() -> None:
        opened = destinations()
        try:
            await require_model(named(content), place, job(), opened)
        finally:
            if opened.hub is not None:
                await opened.hub.close()

    asyncio.run(look())


def on_hub(hub: HubServer, content: bytes) -> tuple[Place, Callable[[], Destinations]]:
    hub.add_repo("anna/cats", private=True, files={"cats.safetensors": content})
    place = Place(kind=HUB, address="hf://anna/cats/cats.safetensors")
    return place, lambda: Destinations(hub=HubClient(url=hub.url, token=HUB_TOKEN, namespace="anna", private=True))


@pytest.mark.parametrize("content", TRICKS)
def test_on_the_hub_a_file_that_only_bears_the_name_is_no_model_and_is_removed(hub: HubServer, content: bytes) -> None:
    place, destinations = on_hub(hub, content)
    with pytest.raises(BrokenModel):
        checked(content, place, destinations)
    assert hub.content("anna/cats", "cats.safetensors") is None


def test_on_the_hub_a_model_stays(hub: HubServer) -> None:
    place, destinations = on_hub(hub, MODEL)
    checked(MODEL, place, destinations)
    assert hub.content("anna/cats", "cats.safetensors") == MODEL


@pytest.mark.parametrize("content", [MODEL, *TRICKS])
def test_in_the_bucket_likewise(open_job_bucket: OpenJobBucket, content: bytes) -> None:
    job_bucket = open_job_bucket()
    key = bucket_key(job(), PATH)
    job_bucket.bucket.put(key, content, sha256=hashlib.sha256(content).hexdigest())
    place = Place(kind=BUCKET, address=job_bucket.bucket.location(key))
    if content == MODEL:
        checked(content, place, lambda: Destinations(bucket=job_bucket))
    else:
        with pytest.raises(BrokenModel):
            checked(content, place, lambda: Destinations(bucket=job_bucket))
    assert (job_bucket.bucket.head(key) is not None) is (content == MODEL)
