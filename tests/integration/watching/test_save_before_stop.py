"""Real trainings that are ended early, by wish or by limit, save first and bring that very checkpoint home."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome, Reason
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

LONG = {"steps": 100_000, "seconds_per_step": 0.05, "save_every": 100_000, "sample_every": 100_000}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture
def world(tmp_path: Path) -> LocalWorld:
    return LocalWorld(tmp_path, STATIONMASTER_MONITORING__POLL_INTERVAL="0.4")


def kinds(world: LocalWorld) -> list[str]:
    wanted = ("save_asked", "save_ended", "terminated", "model_safe", "outcome")
    return [event.kind for event in world.station.events.of_job("job") if event.kind in wanted]


def saved_step(world: LocalWorld) -> int:
    """The step of the file that the training saved when it was asked."""
    (event,) = [event for event in world.station.events.of_job("job") if event.kind == "save_ended"]
    assert event.payload["state"] == "saved", event.payload
    (path,) = event.payload["files"]
    return int(path.removesuffix(".safetensors")[-9:])


def kept(world: LocalWorld) -> list[int | None]:
    """The steps of the checkpoints that are safe at home."""
    found = world.station.jobs.view("job").checkpoints
    return [one.step for one in found if one.kind == "checkpoint" and one.verified_at]


def test_a_stop_saves_at_the_step_where_it_is(world: LocalWorld, pictures: Path) -> None:
    with world:
        submit(world.station, world.request(pictures, id="job", parameters=LONG))
        world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > 5, what="some steps")
        world.station.jobs.desire("job", Desired.STOP)
        world.work_until_ended("job")
        job = world.station.jobs.view("job").job
        assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER)
        assert kinds(world) == ["save_asked", "save_ended", "model_safe", "outcome"]
        # Told to end it saves once more, a moment later; without the first save it would have had nothing before that.
        assert max(step or 0 for step in kept(world)) >= saved_step(world) > 5


def test_a_worker_that_comes_after_a_crash_waits_for_the_same_save(world: LocalWorld, pictures: Path) -> None:
    with world:
        submit(world.station, world.request(pictures, id="job", parameters=LONG))
        world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > 5, what="some steps")
        world.station.jobs.desire("job", Desired.STOP)
        world.work_until(lambda: "save_asked" in kinds(world), what="the asking")
        world.work_until_ended("job")  # by another worker
        assert kinds(world) == ["save_asked", "save_ended", "model_safe", "outcome"]
        assert saved_step(world) > 5


def test_the_hard_limit_saves_first(world: LocalWorld, pictures: Path) -> None:
    with world:
        submit(world.station, world.request(pictures, id="job", parameters=LONG, max_hours=2))
        world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > 5, what="some steps")
        world.work_until_ended("job", later=3 * 3600.0)
        job = world.station.jobs.view("job").job
        assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.HARD_LIMIT), job.explanation
        assert kinds(world) == ["save_asked", "save_ended", "terminated", "model_safe", "outcome"]
        assert max(step or 0 for step in kept(world)) >= saved_step(world)
