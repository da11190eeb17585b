"""`stationmaster models`: what is in the catalogue is shown, published and downloaded, verified each time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from stationmaster.model import Place, Registration, SamplePicture, TrainedModel
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.cli_runs import Home
from tests.support.commands.json_documents import assert_documented
from tests.support.servers.hub_server import HUB_TOKEN, HubServer

WEIGHTS = os.urandom(200_000)
SLUG = "my-cats-0a1b2c"
REPO = f"anna/{SLUG}"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


@pytest.fixture
def model(home: Home) -> TrainedModel:
    """A model at home, in the catalogue."""
    folder = home.path / "jobs" / "j1"
    folder.mkdir(parents=True)
    (folder / "cats.safetensors").write_bytes(WEIGHTS)
    (folder / "cats__000000020_0.png").write_bytes(b"a picture")
    made = TrainedModel(
        slug=SLUG,
        job_id="j1",
        name="My Cats",
        recipe="flux-lora@1",
        file_name="cats.safetensors",
        sha256=hashlib.sha256(WEIGHTS).hexdigest(),
        size=len(WEIGHTS),
        complete=False,
        created_at=1_700_000_000.0,
        family="flux",
        trigger="ohwx cat",
        base_model="black-forest-labs/FLUX.1-dev",
        dataset_sha256="2" * 64,
        details={"steps": 3500, "target_steps": 4000, "reason": "STALLED", "parameters": {"rank": 32}},
        places=(Place(kind="home", address=str(folder / "cats.safetensors")),),
        previews=(SamplePicture(path=str(folder / "cats__000000020_0.png"), text="ohwx cat: asleep"),),
        registration=Registration(note="not registered: private, no bucket"),
    )
    put(home, made)
    return made


def put(home: Home, model: TrainedModel) -> None:
    with closing(Store(Database(f"sqlite:///{home.path}/stationmaster.db"))) as store:
        store.models.put(model)


def test_the_catalogue_is_listed_for_people_and_programs(home: Home, model: TrainedModel) -> None:
    listed = home.run("models", "list")
    assert SLUG in listed.out
    assert "incomplete" in listed.out
    (found,) = home.run("models", "list", "--json").json()
    assert (found["slug"], found["sha256"]) == (SLUG, model.sha256)


def test_a_model_is_shown_with_its_lineage_and_why_it_is_not_registered(home: Home, model: TrainedModel) -> None:
    for reference in (SLUG, "j1", "My Cats", "my-cats"):
        shown = home.run("models", "show", reference).out
        for said in (model.sha256, "flux-lora@1", "ohwx cat", "2" * 64, "not registered: private, no bucket"):
            assert said in shown
    assert home.run("models", "show", SLUG, "--json").json()["base_model"] == "black-forest-labs/FLUX.1-dev"


def test_a_model_that_is_not_there_is_one_line_and_a_hint(home: Home, model: TrainedModel) -> None:
    put(home, replace(model, slug="my-cats-ffffff"))
    for reference, said in (("dogs", "no model"), ("my-cats", "matches 2 models")):
        ran = home.run("models", "show", reference)
        assert (ran.code, said in ran.err, "hint: " in ran.err) == (6, True, True)


def test_publish_puts_weights_samples_and_card_on_the_hub_once(home: Home, model: TrainedModel, hub: HubServer) -> None:
    run = partial(home.run, HF_TOKEN=HUB_TOKEN, STATIONMASTER_HUB__URL=hub.url, HF_HUB_DISABLE_XET="1")
    ran = run("models", "publish", SLUG)
    assert ran.code == 0, ran.err
    assert f"{hub.url}/{REPO}" in ran.out
    assert hub.content(REPO, "cats.safetensors") == WEIGHTS
    assert hub.content(REPO, "samples/cats__000000020_0.png") == b"a picture"
    card = (hub.content(REPO, "README.md") or b"").decode()
    assert yaml.safe_load(card.split("---\n")[1])["widget"][0]["text"] == "ohwx cat: asleep"
    assert "- Completed steps: 3500 (87.5%)" in card
    commits = len(hub.repos["model", REPO].commits)
    assert_documented("models publish", run("models", "publish", SLUG, "--json").json())
    assert len(hub.repos["model", REPO].commits) == commits
    places = home.run("models", "show", SLUG, "--json").json()["places"]
    assert [place["kind"] for place in places] == ["home", "hub"]


def test_publish_without_a_token_says_what_is_missing(home: Home, model: TrainedModel) -> None:
    ran = home.run("models", "publish", model.slug)
    assert (ran.code, "HF_TOKEN" in ran.err) == (3, True)


def test_a_model_is_downloaded_from_home_or_from_the_hub(home: Home, model: TrainedModel, hub: HubServer) -> None:
    ran = home.run("models", "download", SLUG, "here")
    assert (home.folder / "here" / "cats.safetensors").read_bytes() == WEIGHTS, ran.err
    hub.add_repo(REPO, {"cats.safetensors": WEIGHTS}, private=True)
    put(home, replace(model, places=(Place(kind="hub", address=f"hf://{REPO}/cats.safetensors"),)))
    ran = home.run("models", "download", SLUG, "there", "--json", HF_TOKEN=HUB_TOKEN, STATIONMASTER_HUB__URL=hub.url)
    assert Path(ran.json()["file"]).name == "cats.safetensors"
    assert (home.folder / "there" / "cats.safetensors").read_bytes() == WEIGHTS
    assert home.run("models", "download", SLUG, "nowhere").code == 6


def test_weights_that_changed_at_home_are_not_passed_on(home: Home, model: TrainedModel) -> None:
    Path(model.places[0].address).write_bytes(os.urandom(len(WEIGHTS)))
    ran = home.run("models", "download", SLUG, "here")
    assert (ran.code, " changed: " in ran.err) == (30, True)
    assert not (home.folder / "here" / "cats.safetensors").exists()
