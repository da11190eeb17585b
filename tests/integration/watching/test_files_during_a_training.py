"""Samples come home while a training runs, and a short training's checkpoints at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.model import Checkpoint, Outcome
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

SHORT = {"steps": 40, "seconds_per_step": 0.0, "save_every": 10, "sample_every": 20}
SAMPLING = {"steps": 100_000, "seconds_per_step": 0.02, "save_every": 100_000, "sample_every": 50}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


def at_home(world: LocalWorld, kind: str) -> list[Checkpoint]:
    files = world.station.jobs.view("job").checkpoints
    return [one for one in files if one.kind == kind and one.verified_at is not None]


def test_samples_come_home_while_the_training_runs_without_being_asked_for(tmp_path: Path, pictures: Path) -> None:
    with LocalWorld(tmp_path, STATIONMASTER_ARTIFACTS__SAMPLES_EVERY="1s") as world:
        submit(world.station, world.request(pictures, id="job", parameters=SAMPLING))
        world.work_until(lambda: len({one.step for one in at_home(world, "sample")}) > 1, what="samples of two steps")
        assert world.station.jobs.view("job").job.outcome is None, "it still trains"
        samples = at_home(world, "sample")
        assert all(Path(str(one.location)).read_bytes().startswith(b"\x89PNG") for one in samples)
        assert len({one.path for one in samples}) == len(samples)
        assert {one.path for one in world.station.artifacts.listed("job") if one.is_available} >= {
            one.path for one in samples
        }
        pulled = world.station.artifacts.pull("job", tmp_path / "pulled")
        assert [path for path in pulled if path.suffix == ".png"]
        told = [one for one in world.station.events.of_job("job") if one.kind == "samples_collected"]
        assert sum(one.payload["count"] for one in told) == len(samples), "each sample is told once"


def test_a_training_that_ends_before_a_checkpoint_was_due_has_its_newest_checkpoints_beside_the_model(
    tmp_path: Path, pictures: Path
) -> None:
    with LocalWorld(tmp_path) as world:
        submit(world.station, world.request(pictures, id="job", parameters=SHORT))
        world.work_until_ended("job")
        view = world.station.jobs.view("job")
        assert view.job.outcome is Outcome.COMPLETED
        found = {one.step: Path(str(one.location)) for one in at_home(world, "checkpoint")}
        assert set(found) >= {20, 30}, "as many as are kept of a long training"
        assert all(place.is_file() for place in found.values())
        assert view.job.model.step in (None, 40), "the model is the final one"
        kinds = [one.kind for one in world.station.events.of_job("job")]
        assert kinds.index("model_safe") < kinds.index("checkpoint_safe"), "the model comes first"


@pytest.mark.parametrize("setting", [{"STATIONMASTER_ARTIFACTS__EVERY": "0"}])
def test_only_the_model_comes_home_if_checkpoints_are_not_wanted(
    tmp_path: Path, pictures: Path, setting: dict[str, str]
) -> None:
    with LocalWorld(tmp_path, **setting) as world:
        submit(world.station, world.request(pictures, id="job", parameters=SHORT))
        world.work_until_ended("job")
        assert len(at_home(world, "checkpoint")) == 1
