"""Whole jobs with real trainings: the model goes along the chain, and whatever breaks on the way, it is safe."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from stationmaster.model import Event, Outcome, TrainedModel
from stationmaster.station.local.station import LocalStation
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from tests.support.servers.s3_servers import S3Server, raw_client, rclone_s3

QUICK = {"STATIONMASTER_LIMITS__FETCH": "60"}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with rclone_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


def hub_settings(hub: HubServer) -> dict[str, str]:
    return {"STATIONMASTER_HUB__PUBLISH": "true", "STATIONMASTER_HUB__URL": hub.url, "HF_TOKEN": HUB_TOKEN, **QUICK}


class Run:
    """One training from submission to end, and what is left of it."""

    def __init__(self, folder: Path, **environ: str) -> None:
        write_pictures(folder / "pictures")
        with LocalWorld(folder, **environ) as world:
            request = world.request(folder / "pictures", name="My Cats", trigger="ohwx cat", id="cats")
            submit(world.station, request)
            world.work_until_ended("cats")
            station = world.station
            assert isinstance(station, LocalStation)
            self.view = station.jobs.view("cats")
            self.events: list[Event] = list(station.events.of_job("cats"))
            found = station.store.models.of_job("cats")
        assert found is not None
        self.model: TrainedModel = found
        self.home = folder / "home" / "jobs" / "cats"

    def told(self, kind: str) -> list[Any]:
        return [event.payload for event in self.events if event.kind == kind]

    def places(self) -> dict[str, str]:
        return {place.kind: place.address for place in self.model.places}


def test_a_model_goes_to_the_hub_with_samples_and_card_and_comes_home(hub: HubServer, tmp_path: Path) -> None:
    run = Run(tmp_path, **hub_settings(hub))
    repo = f"anna/{run.model.slug}"
    weights = (run.home / "model.safetensors").read_bytes()
    assert run.view.job.outcome is Outcome.COMPLETED
    assert hub.content(repo, run.model.file_name) == weights
    assert hub.repos["model", repo].private
    assert run.model.sha256 == hashlib.sha256(weights).hexdigest()
    assert run.places()["hub"] == f"hf://{repo}/{run.model.file_name}"
    assert set(run.places()) == {"home", "hub"}
    card = hub.content(repo, "README.md")
    assert card is not None
    front = yaml.safe_load(card.decode().split("---\n")[1])
    assert front["instance_prompt"] == "ohwx cat"
    assert len(front["widget"]) == 4
    for shown in front["widget"]:
        assert hub.content(repo, shown["output"]["url"])
        assert "ohwx cat" in shown["text"]
    assert run.told("model_safe")[0]["location"].startswith("hf://")


def test_a_model_that_the_hub_refuses_goes_to_the_bucket(hub: HubServer, bucket: S3Server, tmp_path: Path) -> None:
    hub.refuse("POST .*/preupload/", 403, times=None)
    run = Run(tmp_path, **hub_settings(hub), **bucket.environment())
    weights = (run.home / "model.safetensors").read_bytes()
    key = run.places()["bucket"].removeprefix(f"s3://{bucket.bucket}/")
    with closing(raw_client(bucket)) as client:
        assert client.get_object(Bucket=bucket.bucket, Key=key)["Body"].read() == weights
    assert run.told("delivery_failed")[0]["place"] == "hub"
    assert "403" in run.told("delivery_failed")[0]["problem"]
    assert run.view.job.outcome is Outcome.COMPLETED


@pytest.mark.slow  # each way on its own is tried in memory
def test_with_hub_and_bucket_down_the_model_is_pulled_home(hub: HubServer, tmp_path: Path) -> None:
    hub.refuse("POST /api/repos/create", 403, times=None)
    nowhere = {
        "STATIONMASTER_BUCKET__NAME": "models",
        "STATIONMASTER_BUCKET__ENDPOINT": "http://127.0.0.1:9",
        "STATIONMASTER_BUCKET__ACCESS_KEY": "key",
        "STATIONMASTER_BUCKET__SECRET_KEY": "planted",
    }
    run = Run(tmp_path, **hub_settings(hub), **nowhere)
    assert run.view.job.outcome is Outcome.COMPLETED
    assert set(run.places()) == {"home"}
    assert (run.home / "model.safetensors").is_file()
    assert {told["place"] for told in run.told("delivery_failed")} == {
        "hub", "bucket", "hub from home", "bucket from home",
    }  # fmt: skip


@pytest.mark.slow  # as above
def test_a_model_that_is_safe_elsewhere_need_not_come_home(hub: HubServer, tmp_path: Path) -> None:
    run = Run(tmp_path, **hub_settings(hub), STATIONMASTER_ARTIFACTS__KEEP_LOCAL="false")
    assert set(run.places()) == {"hub"}
    assert not list(run.home.rglob("*.safetensors"))
    assert run.model.previews
    assert all(Path(preview.path).is_file() for preview in run.model.previews)
