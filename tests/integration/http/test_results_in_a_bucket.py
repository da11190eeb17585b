"""Files that are stored in a bucket come through the server, in ranges: its keys stay there."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from stationmaster.model import Place, TrainedModel
from tests.support.jobs.served_files import JOB, FilesWorld, address
from tests.support.servers.s3_servers import S3Server, raw_client, rclone_s3

MODEL = bytes(range(256)) * 20_000  # more than one request's worth


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with rclone_s3(tmp_path_factory.mktemp("bucket")) as server:
        yield server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, bucket: S3Server) -> Iterator[FilesWorld]:
    with FilesWorld(tmp_path_factory.mktemp("files"), **bucket.environment()) as opened:
        yield opened


def stored(bucket: S3Server, name: str, data: bytes) -> str:
    raw_client(bucket).put_object(Bucket=bucket.bucket, Key=name, Body=data)
    return f"s3://{bucket.bucket}/{name}"


def test_a_file_of_the_bucket_is_served_whole_and_in_ranges(
    world: FilesWorld, bucket: S3Server, tmp_path: Path
) -> None:
    world.put("output/far.safetensors", MODEL, kind="checkpoint", location=stored(bucket, "far.safetensors", MODEL))
    with world.client("ann") as client:
        whole = client.get(address("output/far.safetensors"))
        assert (whole.status_code, whole.content) == (200, MODEL)
        assert bucket.access_key not in str(whole.headers)
        part = client.get(address("output/far.safetensors"), headers={"Range": "bytes=4194300-4194310"})
        assert (part.status_code, part.content) == (206, MODEL[4194300:4194311])
    assert (tmp_path / "output" / "far.safetensors") in world.station.artifacts.pull(JOB, tmp_path)
    assert (tmp_path / "output" / "far.safetensors").read_bytes() == MODEL


def test_a_picture_of_the_bucket_has_a_thumbnail(world: FilesWorld, bucket: S3Server) -> None:
    made = io.BytesIO()
    Image.new("RGB", (300, 300)).save(made, "PNG")
    world.put("output/far.png", made.getvalue(), location=stored(bucket, "far.png", made.getvalue()))
    with world.client() as client:
        answer = client.get(address("output/far.png", below="thumbnails"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")


def test_an_object_that_is_gone_or_has_changed_is_not_served(world: FilesWorld, bucket: S3Server) -> None:
    world.put("output/gone.bin", b"gone", attempt=0, location=f"s3://{bucket.bucket}/gone.bin")
    world.put("output/changed.bin", b"before", attempt=0, location=stored(bucket, "changed.bin", b"afterwards"))
    with world.client() as client:
        assert client.get(address("output/gone.bin")).status_code == 404
        assert client.get(address("output/changed.bin")).status_code == 502


def test_a_model_whose_local_copy_is_gone_comes_from_the_bucket(
    world: FilesWorld, bucket: S3Server, tmp_path: Path
) -> None:
    model = TrainedModel(
        slug="far-1",
        job_id="far",
        name="far",
        recipe="tiny-lora@1",
        file_name="far.safetensors",
        sha256=hashlib.sha256(MODEL).hexdigest(),
        size=len(MODEL),
        complete=True,
        created_at=1.0,
        places=(
            Place(kind="home", address=str(tmp_path / "nowhere")),
            Place(kind="bucket", address=stored(bucket, "model.safetensors", MODEL)),
        ),
    )
    world.store.models.put(model)
    assert world.station.models.download("far-1", tmp_path).read_bytes() == MODEL
