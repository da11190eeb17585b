"""A worker on another host has none of the collected checkpoints: it finds them in the bucket."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from pathlib import Path

from stationmaster.model import Checkpoint, Event
from stationmaster.providers.loopback import LoopbackProvider
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.s3_servers import S3Server

PARAMETERS = {"steps": 6000, "seconds_per_step": 0.02, "save_every": 10, "sample_every": 6000, "keep_saves": 20}


def told(world: LocalWorld, kind: str) -> list[Event]:
    return [event for event in world.station.events.of_job("lost") if event.kind == kind]


def kept_of(world: LocalWorld) -> list[Checkpoint]:
    found = world.station.jobs.view("lost").checkpoints
    return [one for one in found if one.verified_at and one.kind == "checkpoint"]


def in_bucket(server: S3Server) -> list[Path]:
    assert server.folder is not None
    return sorted(path for path in server.folder.rglob("*.safetensors") if "lost" in path.parts)


def test_the_next_attempt_goes_on_from_the_bucket_where_home_has_nothing(rclone: S3Server, tmp_path: Path) -> None:
    environ = {**rclone.environment(), "STATIONMASTER_ARTIFACTS__MIRROR": "true"}
    with LocalWorld(tmp_path, **environ, STATIONMASTER_ARTIFACTS__EVERY="0.3") as world:
        submit(world.station, world.request(write_pictures(tmp_path / "cats"), id="lost", parameters=PARAMETERS))

        def is_mirrored() -> bool:
            if len(told(world, "checkpoint_safe")) < 4:
                return False
            world.stop_training("lost")  # what was collected last is uploaded after it was recorded
            mirrored = {hashlib.sha256(path.read_bytes()).hexdigest() for path in in_bucket(rclone)}
            return mirrored >= {one.sha256 for one in kept_of(world)}

        world.work_until(is_mirrored, what="more checkpoints than are kept, and those that are kept in the bucket")
        kept = kept_of(world)
        assert {path.name for path in in_bucket(rclone)} >= {Path(one.path).name for one in kept}

        (rental,) = world.station.jobs.view("lost").rentals
        provider = LoopbackProvider(world.settings.home / "machines", environment={})
        asyncio.run(provider.destroy(rental.provider_id or ""))
        shutil.rmtree(world.settings.home / "jobs" / "lost" / "checkpoints")

        world.work_until(lambda: bool(told(world, "resumed")), what="the next attempt goes on from a checkpoint")
        (resumed,) = told(world, "resumed")
        best = max(kept, key=lambda one: one.step or 0)
        assert (resumed.payload["step"], resumed.payload["sha256"]) == (best.step, best.sha256)
        assert resumed.payload["from_attempt"] == 1
