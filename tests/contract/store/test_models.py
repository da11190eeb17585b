"""The catalogue: models are written with their job's news, found by what people call them, and due for registration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from stationmaster.model import Outcome, Place, Registering, Registration, SamplePicture, State, TrainedModel
from stationmaster.store import tables
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from stationmaster.watch.baseline import RunFacts
from tests.support.jobs.spine_values import spec


def model(slug: str = "cats-0a1b2c", **fields: Any) -> TrainedModel:
    values: dict[str, Any] = {
        "slug": slug, "job_id": "job", "name": "cats", "recipe": "flux-lora@1", "file_name": "cats.safetensors",
        "sha256": "1" * 64, "size": 10, "complete": True, "created_at": 5.0,
    }  # fmt: skip
    return TrainedModel(**{**values, **fields})


def test_a_model_is_read_as_it_was_written(store: Store) -> None:
    written = model(
        family="flux",
        trigger="ohwx cat",
        base_model="black-forest-labs/FLUX.1-dev",
        dataset_sha256="2" * 64,
        owner="ann",
        details={"steps": 4000, "parameters": {"rank": 32}},
        places=(Place(kind="home", address="/m"), Place(kind="hub", address="hf://ann/cats/m", link="l", public=True)),
        previews=(SamplePicture(path="/s/1.png", text="ohwx cat: asleep"),),
        registration=Registration(state=Registering.STARTED, note="30 %", due_at=7.5, tries=2),
    )
    store.models.put(written)
    assert store.models.listed() == [written]
    assert store.models.of_job("job") == written


def test_a_model_comes_with_its_jobs_own_write(store: Store) -> None:
    store.jobs.submit(spec("job"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    store.leases.settle(lease, Write(job=lease.job, models=(model(),)))
    assert store.models.matching("cats-0a1b2c") == [model()]


def test_a_model_outlives_its_job_and_so_does_what_later_runs_are_compared_with(store: Store) -> None:
    store.jobs.submit(spec("job"))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    ended = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED)
    run = RunFacts(recipe="flux-lora@1", gpu="RTX 4090")
    store.leases.settle(lease, Write(job=ended, due_in=None, models=(model(),), past_run=run))
    store.jobs.remove("job")
    assert store.models.listed() == [model()]
    assert past_runs(store) == 1


def past_runs(store: Store) -> int:
    with store.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(tables.past_runs)).scalar_one())


def test_writing_a_model_again_changes_it(store: Store) -> None:
    store.models.put(model())
    moved = model().at(Place(kind="home", address="/a")).at(Place(kind="home", address="/b"))
    store.models.put(moved)
    assert [one.places for one in store.models.listed()] == [(Place(kind="home", address="/b"),)]


def test_models_are_found_by_slug_job_name_or_the_beginning_of_the_slug(store: Store) -> None:
    first = model("cats-0a1b2c", job_id="j1", created_at=1.0)
    second = model("dogs-0a1b2c", job_id="j2", name="dogs", created_at=2.0)
    for one in (first, second):
        store.models.put(one)
    for reference in ("cats-0a1b2c", "j1", "cats", "cats-0"):
        assert store.models.matching(reference) == [first]
    assert store.models.matching("%") == []
    assert store.models.listed() == [second, first]


def test_models_come_up_for_registration_when_they_are_due(store: Store) -> None:
    now = store.now()
    due = model("due", registration=Registration(state=Registering.DUE, due_at=now - 1))
    later = model("later", registration=Registration(state=Registering.DUE, due_at=now + 1000))
    done = model("done", registration=Registration(state=Registering.DONE))
    for one in (due, later, done):
        store.models.put(one)
    assert store.models.to_register() == [due]
    assert store.models.count_to_register() == 2
    store.models.put(replace(due, registration=Registration(state=Registering.DONE)))
    assert store.models.to_register() == []


def test_a_removed_model_is_no_longer_listed(store: Store) -> None:
    store.models.put(model())
    assert store.models.listed()
    store.models.remove("cats-0a1b2c")
    assert store.models.listed() == []
