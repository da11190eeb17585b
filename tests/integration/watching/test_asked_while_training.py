"""A person asks a real training for a checkpoint or for samples: they come home, and it goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from stationmaster.errors import AlreadyEnded, IllegalMove
from stationmaster.model import Desired, Event, Request
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

LONG = {"steps": 100_000, "seconds_per_step": 0.05, "save_every": 100_000, "sample_every": 100_000}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def world(tmp_path: Path) -> LocalWorld:
    return LocalWorld(tmp_path)


def begun(world: LocalWorld, pictures: Path) -> None:
    submit(world.station, world.request(pictures, id="job", parameters=LONG))
    world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > 5, what="some steps")


def answers(world: LocalWorld, kind: str) -> list[Event]:
    return [event for event in world.station.events.of_job("job") if event.kind == kind]


def is_answered(world: LocalWorld, times: int) -> bool:
    return len(answers(world, "save_ended")) == times


def is_passed_on(world: LocalWorld) -> bool:
    requests = world.store.jobs.get("job").requests
    return requests.pending is not None or bool(requests.answered)


def test_samples_come_home_while_it_trains_on(world: LocalWorld, pictures: Path) -> None:
    with world:
        begun(world, pictures)
        asked_at = world.station.jobs.find("job").progress.step or 0
        world.station.jobs.ask("job", Request.SAMPLE)
        world.work_until(lambda: bool(answers(world, "sample_ended")), what="the samples")
        (answer,) = answers(world, "sample_ended")
        assert answer.payload["state"] == "sampled"
        assert len(answer.payload["places"]) == 4, "all that are made at a time, not only the first"
        assert all(Path(place).read_bytes().startswith(b"\x89PNG") for place in answer.payload["places"])
        samples = [one for one in world.station.jobs.view("job").checkpoints if one.kind == "sample"]
        assert {one.location for one in samples} == set(answer.payload["places"])
        assert all((one.step or 0) >= asked_at for one in samples)
        reached = world.station.jobs.find("job").progress.step or 0
        world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > reached, what="further steps")
        assert len(answers(world, "sample_ended")) == 1, "asked once, answered once"


def test_a_checkpoint_comes_home_at_once_and_each_wish_is_passed_on(world: LocalWorld, pictures: Path) -> None:
    with world:
        begun(world, pictures)
        for number in (1, 2):
            assert world.station.jobs.ask("job", Request.SAVE).job.saves_asked == number
            world.work_until(partial(is_answered, world, number), what="the save")
        saved = [path for event in answers(world, "save_ended") for path in event.payload["files"]]
        assert len(set(saved)) == 2
        world.work_until(lambda: bool(answers(world, "checkpoint_safe")), what="the checkpoint at home")
        assert answers(world, "checkpoint_safe")[0].payload["path"] in saved


def test_a_wish_of_a_crashed_worker_is_passed_on_once(world: LocalWorld, pictures: Path) -> None:
    with world:
        begun(world, pictures)
        world.station.jobs.ask("job", Request.SAVE)  # nobody works now
        world.work_until(lambda: is_passed_on(world), what="the asking")
        world.work_until(lambda: bool(answers(world, "save_ended")), what="the save")
        assert len(answers(world, "save_ended")[0].payload["files"]) == 1


def test_a_training_is_asked_once_it_runs_and_not_when_it_is_to_end(world: LocalWorld, pictures: Path) -> None:
    with world:
        submit(world.station, world.request(pictures, id="job", parameters=LONG))
        assert "as soon as it starts" in world.station.jobs.ask("job", Request.SAVE).note
        world.work_until(partial(is_answered, world, 1), what="the save")
        world.station.jobs.desire("job", Desired.STOP)
        with pytest.raises(IllegalMove, match="is already stopping"):
            world.station.jobs.ask("job", Request.SAMPLE)
        world.work_until_ended("job")
        with pytest.raises(AlreadyEnded):
            world.station.jobs.ask("job", Request.SAVE)
