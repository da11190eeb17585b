"""Old jobs are deleted only where nothing that bills, runs or cannot be replaced goes with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings
from stationmaster.model import Place, RentalState, TrainedModel
from stationmaster.model.catalogue import HOME, HUB
from stationmaster.station.local.station import LocalStation
from stationmaster.station.pruning import OldJob, old_jobs
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import label, spec
from tests.support.jobs.stored_jobs import change_row, machine_of, put_trained

DAY = 86400.0
FILE = {"name": "cats.safetensors", "sha256": "0" * 64, "size": 7, "path": "output/cats.safetensors"}
Find = Callable[..., dict[str, OldJob]]


@pytest.fixture
def station(tmp_path: Path) -> Iterator[LocalStation]:
    settings = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    with closing(LocalStation(settings, {})) as opened:
        yield opened


@pytest.fixture
def find(station: LocalStation) -> Find:
    def found(days: float = 30, **options: Any) -> dict[str, OldJob]:
        given = {"with_models": False, **options}
        return {job.id: job for job in old_jobs(station.jobs, older_than_seconds=days * DAY, **given)}

    return found


def put_old(store: Store, job_id: str, *, days: float = 100, model: bool = True) -> None:
    """A job that ended long ago; `model`: its checkpoint lies here."""
    put_trained(store, job_id)
    change_row(store, job_id, ended_at=store.now() - days * DAY)
    if not model:
        with store.database.write() as connection:
            connection.exec_driver_sql(f"DELETE FROM checkpoints WHERE job_id = '{job_id}'")


def test_only_jobs_that_ended_long_enough_ago_are_found(station: LocalStation, find: Find) -> None:
    put_old(station.store, "old", days=31, model=False)
    put_old(station.store, "young", days=29, model=False)
    station.store.jobs.submit(spec("runs"))
    assert {name: job.kept for name, job in find().items()} == {"old": None}
    assert find(days=40) == {}


def test_a_job_whose_machine_may_bill_stays_whatever_is_asked(station: LocalStation, find: Find) -> None:
    put_old(station.store, "bills", model=False)
    station.store.rentals.put_without_lease(
        machine_of("bills", label=label("bills", 2), held_at=1_000.0, gone_at=None, state=RentalState.RELEASING)
    )
    assert find(with_models=True)["bills"].kept == "its machine is not confirmed gone"


def test_a_job_that_another_one_continues_stays(station: LocalStation, find: Find) -> None:
    put_old(station.store, "first", model=False)
    station.store.jobs.submit(spec("second", retry_of="first"))
    assert find(with_models=True)["first"].kept == "a job that has not ended repeats it"
    change_row(station.store, "second", state="ENDED", ended_at=station.store.now())
    assert find()["first"].kept is None


def test_a_model_that_is_only_here_stays_unless_it_is_given_up(station: LocalStation, find: Find) -> None:
    put_old(station.store, "done")
    assert (find()["done"].kept, find()["done"].bytes) == ("its model is stored nowhere else", 7)
    assert find(with_models=True)["done"].kept is None


@pytest.mark.parametrize(("kinds", "stays"), [((HOME,), True), ((HOME, HUB), False)])
def test_the_catalogue_tells_where_a_model_is(
    station: LocalStation, find: Find, kinds: tuple[str, ...], stays: bool
) -> None:
    put_old(station.store, "done")
    change_row(station.store, "done", memory=json.dumps({"model_file": FILE}))
    places = tuple(Place(kind=kind, address=f"{kind}/x") for kind in kinds)
    station.store.models.put(
        TrainedModel(
            slug="cats", job_id="done", name="cats", recipe="tiny-lora@1", file_name="cats.safetensors",
            sha256="0" * 64, size=7, complete=True, created_at=1_000.0, places=places,
        )
    )  # fmt: skip
    assert (find()["done"].kept is not None) == stays


def test_all_pages_of_jobs_are_looked_at(station: LocalStation, find: Find) -> None:
    for number in range(205):
        station.store.jobs.submit(spec(f"job-{number}"))
        change_row(station.store, f"job-{number}", state="ENDED", ended_at=1_000.0)
    assert len(find()) == 205
