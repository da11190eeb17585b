"""What every face may rely on about a job that has trained."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.errors import (
    ConfigInvalid,
    NotFound,
    TransferFailed,
    UserError,
)
from stationmaster.model import Checkpoint, Desired, Outcome, Reason, State
from stationmaster.remote.shell import shell_folder
from stationmaster.station.base import Station
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station, here_and_over_http
from tests.support.jobs.submitting import retry, submit


def models(station: Station, job_id: str) -> Sequence[Checkpoint]:
    return [one for one in station.jobs.view(job_id).checkpoints if one.kind == "checkpoint" and one.verified_at]


def model_of(station: Station, job_id: str) -> Checkpoint:
    """The model itself, without the checkpoints beside it."""
    address = station.jobs.view(job_id).job.model.address
    (model,) = [one for one in models(station, job_id) if one.location == address]
    return model


def test_a_stopped_training_keeps_its_best_checkpoint(world: LocalWorld, pictures: Path) -> None:
    endless = {"steps": 100_000, "seconds_per_step": 0.05, "save_every": 5}
    submit(world.station, world.request(pictures, id="mine", parameters=endless))
    world.work_until(lambda: bool(world.store.checkpoints.of_job("mine")), what="a checkpoint")
    assert world.store.jobs.get("mine").machine.access is not None
    world.station.jobs.desire("mine", Desired.STOP)
    world.work_until_ended("mine")
    view = world.station.jobs.view("mine")
    assert (view.job.outcome, view.job.reason) == (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER)
    model = model_of(world.station, "mine")
    assert model.step
    assert Path(str(model.location)).is_file()
    assert all(rental.gone_at for rental in view.rentals)
    _goes_on_from_it(world, model)


def _goes_on_from_it(world: LocalWorld, model: Checkpoint) -> None:
    """`retry --resume` starts a new job from the old one's checkpoint."""
    again = retry(world.station, "mine", resume=True, new_id="again")
    assert (again.job.spec.retry_of, again.job.spec.resume_from) == ("mine", model.location)
    assert again.job.attempt == 0
    first_step = model.step or 0
    world.work_until(
        lambda: (world.store.jobs.get("again").progress.step or 0) > first_step,
        what="a step after the checkpoint",
    )
    world.station.jobs.desire("again", Desired.CANCEL)
    world.work_until_ended("again")
    assert b"resum" in b"".join(chunk.data for _, chunk in world.station.logs.of_job("again")).lower()
    assert world.station.jobs.view("again").job.outcome is Outcome.CANCELLED
    assert models(world.station, "again") == []


@every_station
def test_a_finished_training_is_shown_whole(finished: LocalWorld) -> None:
    view = finished.station.jobs.view("done")
    assert (view.shown, view.stage, view.job.state) == ("COMPLETED", "completed", State.ENDED)
    assert view.job.reason is Reason.FINISHED
    assert (view.job.progress.step, view.job.progress.total_steps) == (20, 20)
    assert view.job.progress.loss is not None
    assert view.job.ended_at is not None
    assert view.now >= view.job.ended_at
    (rental,) = view.rentals
    assert rental.gone_at is not None
    assert (view.alerts, view.access, view.cost) == ((), None, 0)
    assert finished.station.jobs.listed(with_ended=False) == []


@every_station
def test_the_events_tell_the_whole_way_without_a_hole(finished: LocalWorld) -> None:
    events = finished.station.events.of_job("done")
    assert [event.job_version for event in events] == list(range(1, len(events) + 1))
    states = [event.payload["to"] for event in events if event.kind == "state"]
    assert states == [state.value for state in State][1:]
    middle = len(events) // 2
    assert list(finished.station.events.of_job("done", after_version=middle)) == list(events)[middle:]
    kinds = [event.kind for event in events]
    assert kinds.index("rental_requested") < kinds.index("rental_held") < kinds.index("model_safe")
    assert kinds.index("outcome") < kinds.index("rental_gone")


@every_station
def test_the_log_and_the_readings_can_be_read(finished: LocalWorld) -> None:
    pieces = finished.station.logs.of_job("done")
    assert b"20/20" in b"".join(chunk.data for _, chunk in pieces)
    assert list(finished.station.logs.of_job("done", after_seq=pieces[-1][0])) == []
    readings = finished.station.readings.of_job("done")
    assert [reading.step for reading in readings] == sorted({reading.step for reading in readings})
    assert readings[-1].step == 20


@every_station
def test_watching_an_ended_job_shows_it_once(finished: LocalWorld) -> None:
    assert [view.shown for view in finished.station.jobs.watch("done")] == ["COMPLETED"]


@every_station
def test_what_came_home_can_be_pulled_verified(finished: LocalWorld, tmp_path: Path) -> None:
    copies = finished.station.artifacts.pull("done", tmp_path / "new" / "folder")
    model = model_of(finished.station, "done")
    copied = tmp_path / "new" / "folder" / model.path
    assert copied in copies
    assert hashlib.sha256(copied.read_bytes()).hexdigest() == model.sha256
    assert {path for path in (tmp_path / "new" / "folder").rglob("*") if path.is_file()} == set(copies)
    assert len(finished.station.artifacts.pull("done", tmp_path / "new" / "folder")) == len(copies)


@here_and_over_http
def test_a_place_where_nothing_can_be_written_is_a_person_s_error_with_a_hint(
    finished: LocalWorld, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    for copy in (finished.station.artifacts.pull, finished.station.models.download):
        with pytest.raises(UserError) as caught:
            copy("done", tmp_path / "file" / "below")
        assert str(tmp_path / "file") in str(caught.value)
        assert caught.value.hint == "choose a folder that you can write to"


def test_the_model_has_its_well_known_names_at_home(finished: LocalWorld) -> None:
    model = model_of(finished.station, "done")
    folder = finished.folder / "home" / "jobs" / "done"
    for name in ("model.safetensors", "latest_checkpoint.safetensors"):
        assert (folder / name).resolve() == Path(str(model.location)).resolve()
    assert (folder / "summary.json").is_file()


@pytest.mark.parametrize("new_id", ["Bad Id", "../../up", "", "x" * 41])
def test_a_retry_s_id_is_checked_like_any_other(finished: LocalWorld, new_id: str) -> None:
    before = finished.station.jobs.listed(with_ended=True)
    with pytest.raises(UserError, match="id"):
        retry(finished.station, "done", new_id=new_id)
    assert finished.station.jobs.listed(with_ended=True) == before


@every_station
def test_a_retry_is_a_new_job_with_the_same_data(finished: LocalWorld) -> None:
    again = retry(finished.station, "cats")
    old = finished.station.jobs.view("done").job.spec
    assert again.created
    assert again.job.spec == replace(old, id=again.job.id, retry_of="done", quote=again.job.spec.quote)
    assert not retry(finished.station, "done", new_id=again.job.id).created
    finished.station.jobs.desire(again.job.id, Desired.CANCEL)
    finished.work_until_ended(again.job.id)
    finished.station.jobs.remove(again.job.id)


def test_a_file_that_changed_at_home_is_not_handed_out_and_goes_with_its_job(
    world: LocalWorld, pictures: Path, tmp_path: Path
) -> None:
    submit(world.station, world.request(pictures, id="mine"))
    world.work_until_ended("mine")
    model = model_of(world.station, "mine")
    with Path(str(model.location)).open("r+b") as file:
        file.write(b"damaged!")
    with pytest.raises(TransferFailed, match="changed: it"):
        world.station.artifacts.pull("mine", tmp_path / "pulled")
    assert not (tmp_path / "pulled" / model.path).exists()
    archive = Path(world.store.jobs.get("mine").spec.dataset.archive)
    shell = shell_folder(world.folder / "home", "mine")
    shell.mkdir(parents=True)
    world.station.jobs.remove("mine")
    with pytest.raises(NotFound):
        world.station.jobs.view("mine")
    assert not archive.exists()
    assert not shell.exists()
    assert not (world.folder / "home" / "jobs" / "mine").exists()
    assert world.station.models.listed() == [], "a model that lies nowhere is not in the catalogue"


@every_station
def test_a_finished_job_has_its_model_in_the_catalogue_with_its_lineage(finished: LocalWorld, tmp_path: Path) -> None:
    station, spec = finished.station, finished.station.jobs.view("done").job.spec
    (model,) = station.models.listed()
    assert (model.job_id, model.name, model.recipe, model.complete) == ("done", "cats", "tiny-lora@1", True)
    assert model.dataset_sha256 == spec.dataset.sha256
    assert [place.kind for place in model.places] == ["home"]
    assert len(model.previews) == 4
    trained = station.jobs.view("done").trained
    assert trained is not None
    assert (trained.slug, trained.sha256, trained.size) == (model.slug, model.sha256, model.size)
    assert [place.address for place in trained.places] == [place.address for place in model.places]
    for reference in (model.slug, "done", "cats", model.slug[:6]):
        assert station.models.find(reference) == model
    copy = station.models.download(model.slug, tmp_path)
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == model.sha256
    with pytest.raises(NotFound):
        station.models.find("dogs")
    with pytest.raises(ConfigInvalid, match="token"):
        station.models.publish(model.slug)
