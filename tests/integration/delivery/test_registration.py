"""Registration with ComfyDeploy: it really downloads what it is told of, is asked again later, never waited for."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings
from stationmaster.control.destinations.destinations import Destinations, open_destinations
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.publishing.registering import PRIVATE, continue_registration, first_registration
from stationmaster.model import Outcome, Place, Registering, Registration, TrainedModel
from stationmaster.station.local.station import LocalStation
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.comfydeploy_server import COMFY_KEY, ComfyDeployServer
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from tests.support.servers.s3_servers import S3Server, rclone_s3
from tests.support.waiting import until

WEIGHTS = os.urandom(50_000)
REPO = "anna/cats-0a1b2c"
MODEL = TrainedModel(
    slug="cats-0a1b2c",
    job_id="job",
    name="cats",
    recipe="flux-lora@1",
    file_name="cats.safetensors",
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
    size=len(WEIGHTS),
    complete=True,
    created_at=0.0,
)
DUE = Registration(state=Registering.DUE, due_at=0.0)


@pytest.fixture
def comfy() -> Iterator[ComfyDeployServer]:
    with ComfyDeployServer() as server:
        yield server
        assert server.wrong == []


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with rclone_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


def destinations(folder: Path, **environ: str) -> Destinations:
    settings = load_settings(
        {"STATIONMASTER_HOME": str(folder / "home"), "HOME": str(folder), **environ}, folder=folder
    )
    (folder / "home").mkdir(exist_ok=True)
    store = Store(Database(f"sqlite:///{folder}/store.db"))
    store.close()
    return open_destinations(settings, store)


def step(model: TrainedModel, places: Destinations, *, now: float = 100.0) -> TrainedModel:
    return asyncio.run(continue_registration(model, places, retry_seconds=900, now=now))


def public(hub: HubServer) -> TrainedModel:
    hub.add_repo(REPO, {"cats.safetensors": WEIGHTS})
    place = Place(kind="hub", address=f"hf://{REPO}/cats.safetensors", link=f"{hub.url}/{REPO}", public=True)
    return replace(MODEL.at(place), registration=DUE)


def settled(model: TrainedModel, places: Destinations) -> TrainedModel:
    """Step on until the service has made up its mind."""
    seen = [model]

    def is_over() -> bool:
        seen.append(step(seen[-1], places))
        return seen[-1].registration.state is not Registering.STARTED

    until(is_over, "the download's end")
    return seen[-1]


def test_a_public_model_is_downloaded_whole_from_its_repository(
    comfy: ComfyDeployServer, hub: HubServer, tmp_path: Path
) -> None:
    places = destinations(tmp_path, **comfy.environ)
    started = step(public(hub), places)
    assert started.registration.state is Registering.STARTED
    assert settled(started, places).registration.state is Registering.DONE
    assert [(one.sha256, one.filename) for one in comfy.downloads] == [(MODEL.sha256, "cats-0a1b2c.safetensors")]


def test_a_private_model_is_downloaded_from_the_bucket_by_a_signed_link(
    comfy: ComfyDeployServer, bucket: S3Server, tmp_path: Path
) -> None:
    places = destinations(tmp_path, **comfy.environ, **bucket.environment())
    assert places.bucket is not None
    places.bucket.bucket.put("jobs/job/cats.safetensors", WEIGHTS, sha256=MODEL.sha256)
    address = places.bucket.bucket.location("jobs/job/cats.safetensors")
    hidden = Place(kind="hub", address="hf://x/y/z", link="https://nowhere.invalid/x/y")
    model = replace(MODEL.at(hidden, Place(kind="bucket", address=address)), registration=DUE)
    assert settled(step(model, places), places).registration.state is Registering.DONE
    assert comfy.downloads[0].sha256 == MODEL.sha256
    assert bucket.secret_key not in comfy.downloads[0].link
    asyncio.run(places.close())


def test_a_link_is_signed_anew_for_each_try(comfy: ComfyDeployServer, bucket: S3Server, tmp_path: Path) -> None:
    places = destinations(tmp_path, **comfy.environ, **bucket.environment())
    assert places.bucket is not None
    address = places.bucket.bucket.location("jobs/job/late.safetensors")  # not there yet: the download fails
    model = replace(MODEL.at(Place(kind="bucket", address=address)), registration=DUE)
    failed = settled(step(model, places), places)
    assert (failed.registration.state, failed.registration.due_at) == (Registering.DUE, 1000.0)
    places.bucket.bucket.put("jobs/job/late.safetensors", WEIGHTS, sha256=MODEL.sha256)
    until(lambda: _seconds() != _signed_at(comfy), "a later second")
    assert settled(step(failed, places), places).registration.state is Registering.DONE
    first, second = comfy.downloads
    assert first.link != second.link
    asyncio.run(places.close())


def _seconds() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _signed_at(comfy: ComfyDeployServer) -> str:
    return comfy.downloads[0].link.partition("X-Amz-Date=")[2][:16]


def test_what_is_there_already_counts_as_done(comfy: ComfyDeployServer, hub: HubServer, tmp_path: Path) -> None:
    places = destinations(tmp_path, **comfy.environ)
    model = public(hub)
    settled(step(model, places), places)
    assert settled(step(model, places), places).registration.state is Registering.DONE
    assert len(comfy.downloads) == 1


@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_failure_is_tried_again_later_and_less_and_less_often(
    status: int, comfy: ComfyDeployServer, hub: HubServer, tmp_path: Path
) -> None:
    places = destinations(tmp_path, **comfy.environ)
    model, pauses = public(hub), []
    for _ in range(12):
        comfy.refusals.append(status)
        model = step(model, places, now=0.0)
        if model.registration.due_at is not None:
            pauses.append(model.registration.due_at)
        assert COMFY_KEY not in str(model.registration.note)
    assert pauses[:4] == [900, 1800, 3600, 7200]
    assert max(pauses) == 6 * 3600
    assert (model.registration.state, model.registration.due_at) == (Registering.NO, None)
    assert str(status) in str(model.registration.note)


def test_a_service_that_forgot_a_download_is_told_again(
    comfy: ComfyDeployServer, hub: HubServer, tmp_path: Path
) -> None:
    places = destinations(tmp_path, **comfy.environ)
    started = step(public(hub), places)
    until(lambda: comfy.downloads[0].status == "success", "the first download")
    comfy.forget()
    assert step(started, places).registration.state is Registering.DUE


@pytest.mark.parametrize(
    ("model", "note"),
    [
        (MODEL.at(Place(kind="hub", address="hf://a/b/c")), PRIVATE),
        (MODEL.at(Place(kind="home", address="/m")), "not registered: not published"),
        (replace(MODEL.at(Place(kind="bucket", address="s3://b/k")), complete=False), "not registered: incomplete"),
    ],
)
def test_what_cannot_or_should_not_be_registered_says_why(model: TrainedModel, note: str, tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_COMFYDEPLOY__API_KEY": "k"}
    policy = policy_of(load_settings(environ, folder=tmp_path))
    assert first_registration(model, policy, now=0.0) == Registration(note=note)


def trained(folder: Path, **environ: str) -> tuple[Any, TrainedModel]:
    write_pictures(folder / "pictures")
    with LocalWorld(folder, **environ) as world:
        submit(world.station, world.request(folder / "pictures", name="cats", trigger="ohwx", id="cats"))
        world.work_until_ended("cats")
        assert isinstance(world.station, LocalStation)
        model = world.station.store.models.of_job("cats")
        assert model is not None
        return world.station.jobs.view("cats"), model


@pytest.mark.slow  # the search for secrets runs such a job as well
def test_a_private_model_of_a_job_gets_a_copy_in_the_bucket_and_is_registered_from_there(
    comfy: ComfyDeployServer, hub: HubServer, bucket: S3Server, tmp_path: Path
) -> None:
    hub_environ = {"STATIONMASTER_HUB__PUBLISH": "true", "STATIONMASTER_HUB__URL": hub.url, "HF_TOKEN": HUB_TOKEN}
    view, model = trained(tmp_path, **hub_environ, **comfy.environ, **bucket.environment())
    assert view.job.outcome is Outcome.COMPLETED
    assert {place.kind for place in model.places} == {"home", "hub", "bucket"}
    assert model.registration.state is Registering.STARTED
    until(lambda: comfy.downloads[0].status == "success", "the service's own download")
    assert comfy.downloads[0].sha256 == model.sha256


@pytest.mark.slow  # the same in memory: a job's own first try, and the registrar's
def test_a_service_that_is_down_keeps_no_job_waiting(comfy: ComfyDeployServer, hub: HubServer, tmp_path: Path) -> None:
    comfy.refusals += [503] * 5
    public_hub = {"STATIONMASTER_HUB__PRIVATE": "false", "STATIONMASTER_HUB__PUBLISH": "true"}
    hub_environ = {"STATIONMASTER_HUB__URL": hub.url, "HF_TOKEN": HUB_TOKEN, **public_hub}
    view, model = trained(tmp_path, **hub_environ, **comfy.environ)
    assert view.job.outcome is Outcome.COMPLETED
    assert (model.registration.state, model.registration.tries) == (Registering.DUE, 1)
