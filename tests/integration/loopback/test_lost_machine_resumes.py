"""A machine that vanishes in mid-training: its checkpoint is at home, and the next machine goes on from it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.delivery.safetensors_header import open_safetensors
from stationmaster.model import Checkpoint, Job, Outcome
from stationmaster.providers.loopback import LoopbackProvider
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

STEPS, KEPT = 400, 3
PARAMETERS = {"steps": STEPS, "seconds_per_step": 0.02, "save_every": 20, "sample_every": 400, "keep_saves": 20}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LocalWorld]:
    with LocalWorld(tmp_path, STATIONMASTER_ARTIFACTS__EVERY="0.3", STATIONMASTER_ARTIFACTS__KEEP=str(KEPT)) as opened:
        yield opened


def job_of(world: LocalWorld, job_id: str) -> Job:
    return world.station.jobs.view(job_id).job


def safe(world: LocalWorld, job_id: str) -> list[Checkpoint]:
    found = world.station.jobs.view(job_id).checkpoints
    return [one for one in found if one.kind == "checkpoint" and one.verified_at]


def furthest_first(found: list[Checkpoint]) -> list[Checkpoint]:
    return sorted(found, key=lambda one: one.step or 0, reverse=True)


def lose_the_machine(world: LocalWorld, job_id: str) -> None:
    """It dies and its provider no longer lists it, as when a host fails."""
    (rental,) = world.station.jobs.view(job_id).rentals
    provider = LoopbackProvider(world.settings.home / "machines", environment={})
    asyncio.run(provider.destroy(rental.provider_id or ""))


def is_tidy(world: LocalWorld, job_id: str) -> bool:
    """Only so many checkpoints are at home; a file that is too many goes after the write, so both have to agree."""
    files = {str(file) for file in (world.settings.home / "jobs" / job_id / "checkpoints").rglob("*.safetensors")}
    return 1 <= len(files) <= KEPT and files == {one.location for one in safe(world, job_id)}


def links_to_furthest(world: LocalWorld, job_id: str, link: Path) -> bool:
    """The link follows the write, and a worker that leaves in between leaves it for the next collection."""
    at_home = [str(one.location) for one in furthest_first(safe(world, job_id))]
    return at_home[:1] == [str(link.resolve())]


def test_a_run_lost_at_sixty_percent_goes_on_from_its_checkpoint_on_another_machine(
    world: LocalWorld, tmp_path: Path
) -> None:
    request = world.request(write_pictures(tmp_path / "pictures"), id="lost", parameters=PARAMETERS)
    submit(world.station, request)

    latest = world.settings.home / "jobs" / "lost" / "latest_checkpoint.safetensors"

    def far_enough() -> bool:
        if (job_of(world, "lost").progress.step or 0) < 0.6 * STEPS:
            return False
        world.stop_training("lost")
        return links_to_furthest(world, "lost", latest)

    world.work_until(far_enough, what="60 % of the training and its furthest checkpoint at home")
    lose_the_machine(world, "lost")

    at_home = furthest_first(safe(world, "lost"))[0]
    assert at_home.step is not None
    assert at_home.location is not None
    content = Path(at_home.location).read_bytes()
    assert hashlib.sha256(content).hexdigest() == at_home.sha256
    assert open_safetensors(Path(at_home.location)).step == at_home.step
    assert open_safetensors(latest).step in {one.step for one in safe(world, "lost")}

    world.work_until_ended("lost")
    job = job_of(world, "lost")
    assert (job.outcome, job.attempt) == (Outcome.COMPLETED, 2)
    (resumed,) = [event for event in world.station.events.of_job("lost") if event.kind == "resumed"]
    assert (resumed.payload["step"], resumed.payload["from_attempt"]) == (at_home.step, 1)
    steps_run = [one.step for one in world.station.readings.of_job("lost") if one.attempt == 2]
    assert steps_run
    assert min(steps_run) >= at_home.step

    lost, resumed_run = (world.store.analyses.of_job("lost", attempt=attempt) for attempt in (1, 2))
    assert lost is not None, "what is known of a lost machine's training is analysed too"
    assert resumed_run is not None
    assert lost.report.summary.steps_completed is not None
    assert at_home.step <= lost.report.summary.steps_completed < STEPS
    assert not lost.report.summary.training_completed
    assert resumed_run.report.summary.training_completed
    assert [event.kind for event in world.station.events.of_job("lost")].count("analysed") == 2
    assert open_safetensors(Path(job.model.address or "")).step == STEPS
    assert all(Path(str(one.location)).is_file() for one in safe(world, "lost"))


def test_only_so_many_checkpoints_are_kept_at_home_and_the_furthest_is_one_of_them(
    world: LocalWorld, tmp_path: Path
) -> None:
    without_end = {**PARAMETERS, "steps": 100_000, "sample_every": 100_000}
    submit(world.station, world.request(write_pictures(tmp_path / "pictures"), id="kept", parameters=without_end))
    latest = world.settings.home / "jobs" / "kept" / "latest_checkpoint.safetensors"

    def has_tidied() -> bool:
        if sum(event.kind == "checkpoint_safe" for event in world.station.events.of_job("kept")) <= KEPT + 1:
            return False
        world.stop_training("kept")
        return is_tidy(world, "kept") and links_to_furthest(world, "kept", latest)

    world.work_until(has_tidied, what="more checkpoints brought home than are kept, and a link to the furthest")
