"""With a bucket and nothing kept at home: the machine's model goes to the bucket, and comes from there when wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import TransferFailed
from stationmaster.model import Checkpoint
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import retry, submit
from tests.support.servers.s3_servers import S3Server


@pytest.fixture(scope="module")
def world(rclone: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    folder = tmp_path_factory.mktemp("station")
    environ = {**rclone.environment(), "STATIONMASTER_ARTIFACTS__KEEP_LOCAL": "false"}
    with LocalWorld(folder, **environ, STATIONMASTER_ARTIFACTS__EVERY="0s") as opened:
        submit(opened.station, opened.request(write_pictures(folder / "cats"), id="done"))
        opened.work_until_ended("done")
        yield opened


def model_of(world: LocalWorld) -> Checkpoint:
    view = world.station.jobs.view("done")
    assert view.job.outcome == "COMPLETED"
    (model,) = [one for one in view.checkpoints if one.kind == "checkpoint" and one.verified_at]
    return model


def test_the_model_is_in_the_bucket_verified_and_not_at_home(world: LocalWorld, rclone: S3Server) -> None:
    model = model_of(world)
    assert str(model.location).startswith(f"s3://{rclone.bucket}/stationmaster/")
    assert rclone.folder is not None
    content = (rclone.folder / str(model.location).removeprefix(f"s3://{rclone.bucket}/")).read_bytes()
    assert hashlib.sha256(content).hexdigest() == model.sha256
    assert not list((world.folder / "home" / "jobs" / "done").rglob("*.safetensors"))
    assert not [path for path in rclone.folder.rglob("*") if path.is_file() and "quarantine" in path.parts]


def test_pull_brings_it_from_there(world: LocalWorld, tmp_path: Path) -> None:
    model = model_of(world)
    assert tmp_path / model.path in world.station.artifacts.pull("done", tmp_path)
    assert hashlib.sha256((tmp_path / model.path).read_bytes()).hexdigest() == model.sha256


def test_a_retry_goes_on_from_the_checkpoint_in_the_bucket(world: LocalWorld) -> None:
    again = retry(world.station, "done", resume=True)
    resumed = Path(str(again.job.spec.resume_from))
    assert hashlib.sha256(resumed.read_bytes()).hexdigest() == model_of(world).sha256


def test_a_model_that_was_changed_in_the_bucket_is_not_handed_out(world: LocalWorld, tmp_path: Path) -> None:
    model = model_of(world)
    bucket_name, _, key = str(model.location).removeprefix("s3://").partition("/")
    with closing(open_other_bucket(world.settings.bucket, bucket_name)) as bucket:
        honest = b"".join(bucket.read(key))
        bucket.put(key, b"damaged", sha256=hashlib.sha256(b"damaged").hexdigest())
        try:
            with pytest.raises(TransferFailed, match="changed: it"):
                world.station.artifacts.pull("done", tmp_path)
            assert not list(tmp_path.rglob("*.safetensors"))
        finally:
            bucket.put(key, honest, sha256=str(model.sha256))
