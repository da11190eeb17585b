"""`dataset` and `train` take a dataset from where it lies."""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from typer.testing import CliRunner, Result

from stationmaster.cli.commands import app
from stationmaster.config import load_settings
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import StationmasterError
from stationmaster.station.job_file import JobFile
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.hub_server import HubServer
from tests.support.servers.s3_servers import S3Server


def run(*arguments: str, home: Path, **environ: str) -> Result:
    """A command, in this process; settings come from its environment alone."""
    done = CliRunner().invoke(app, ["--home", str(home), *arguments], env={"NO_COLOR": "1", **environ})
    structlog.reset_defaults()  # the command's standard error is closed by now
    return done


def test_a_set_in_a_bucket_and_one_of_the_hub_pack_to_the_same_bytes_as_the_folder(
    rclone: S3Server, tmp_path: Path
) -> None:
    folder = write_pictures(tmp_path / "pictures", 4)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    key = f"packed-{secrets.token_hex(4)}"
    at = load_settings({"STATIONMASTER_HOME": str(tmp_path), **rclone.environment()}, folder=tmp_path)
    with closing(open_other_bucket(at.bucket, rclone.bucket)) as bucket:
        for path, content in files.items():
            bucket.put(f"{key}/{path}", content, sha256=hashlib.sha256(content).hexdigest())
    with HubServer() as hub:
        hub.add_repo("anna/pictures", files, kind="dataset")
        environ = {**rclone.environment(), "STATIONMASTER_HUB__URL": hub.url}
        packed = []
        for number, source in enumerate([str(folder), f"s3://{rclone.bucket}/{key}", "hf://datasets/anna/pictures"]):
            done = run("dataset", "pack", source, str(tmp_path / f"{number}.tar"), "--json", home=tmp_path, **environ)
            assert done.exit_code == 0, done.output
            packed.append(json.loads(done.stdout))
        checked = run("dataset", "check", f"s3://{rclone.bucket}/{key}", "--min-images", "4", home=tmp_path, **environ)
    assert len({one["sha256"] for one in packed}) == 1
    assert checked.exit_code == 0, checked.output
    assert "4 images" in checked.stdout


def test_a_dataset_that_cannot_be_had_is_one_line_and_a_hint(rclone: S3Server, tmp_path: Path) -> None:
    for source, environ, word in (
        (f"s3://{rclone.bucket}/none-there", rclone.environment(), "does not exist or is empty"),
        ("s3://pictures/cats", {}, "no key is set"),
        ("ftp://pictures/cats", {}, "not a supported dataset address"),
    ):
        done = run("train", "--recipe", "tiny-lora@1", "--dataset", source, "--dry-run", home=tmp_path, **environ)
        assert isinstance(done.exception, StationmasterError), done.exception
        assert word in str(done.exception)
        assert done.exception.hint
        assert "planted" not in f"{done.exception} {done.exception.hint} {done.output}"


def test_a_job_file_may_name_a_dataset_elsewhere() -> None:
    request = JobFile(recipe="tiny-lora@1", dataset="hf://datasets/anna/cats@v1").request()
    assert str(request.dataset) == "hf://datasets/anna/cats@v1"
    assert request.dataset.name == "cats"


def put_pictures(folder: Path, key: str, world: LocalWorld, server: S3Server) -> None:
    with closing(open_other_bucket(world.settings.bucket, server.bucket)) as bucket:
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            content = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            bucket.put(f"{key}/{name}", content, sha256=hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("changes_later", [False, True])
def test_the_machine_fetches_a_set_from_the_bucket_itself_and_is_sent_what_it_cannot_have(
    rclone: S3Server, tmp_path: Path, changes_later: bool
) -> None:
    folder = write_pictures(tmp_path / "pictures", 4)
    key = f"trained-{secrets.token_hex(4)}/cats"
    with LocalWorld(tmp_path, **rclone.environment()) as world:
        put_pictures(folder, key, world, rclone)
        request = JobFile(
            recipe="tiny-lora@1",
            dataset=f"s3://{rclone.bucket}/{key}",
            id="from-a-bucket",
            parameters={"steps": 10, "seconds_per_step": 0},
        ).request()
        job = submit(world.station, request).job
        assert job.spec.name == "cats"
        assert job.spec.dataset.source == f"s3://{rclone.bucket}/{key}"
        if changes_later:
            for caption in folder.rglob("*.txt"):
                caption.write_text("something else by now")
            put_pictures(folder, key, world, rclone)
        world.work_until(lambda: "EXECUTING" in _states(world, job.id), what="the dataset is there")
        told = [event.kind for event in world.station.events.of_job(job.id)]
        assert ("data_pulled" in told) is not changes_later
        assert "data_verified" in told
        everything = str([(event.kind, event.payload) for event in world.station.events.of_job(job.id)])
        assert "X-Amz" not in everything


def _states(world: LocalWorld, job_id: str) -> list[str]:
    return [event.payload["to"] for event in world.station.events.of_job(job_id) if event.kind == "state"]
