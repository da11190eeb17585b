"""Each test runs on a folder and on buckets of real servers; with --live on the bucket that the settings name."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.delivery.artifact_store import ArtifactStore, BucketArtifacts, FolderArtifacts
from stationmaster.delivery.bucket import Bucket
from stationmaster.delivery.s3_client import new_client
from tests.support.servers.s3_servers import S3Server

OpenBucket = Callable[[S3Server], Bucket]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_kind" in metafunc.fixturenames:
        live = metafunc.config.getoption("--live")
        metafunc.parametrize("store_kind", ["seaweed"] if live else ["folder", "rclone", "seaweed"])


@pytest.fixture(scope="session")
def seaweed(pytestconfig: pytest.Config, seaweed: S3Server) -> S3Server:
    """The bucket that enforces what is signed: a server of the test's own, or a live one."""
    return _live_server() if pytestconfig.getoption("--live") else seaweed


@pytest.fixture
def open_bucket() -> Iterator[OpenBucket]:
    """Opens the server's bucket below a prefix of the test's own, which is empty afterwards."""
    opened: list[Bucket] = []
    prefix = f"contract-{secrets.token_hex(4)}"

    def open_it(server: S3Server) -> Bucket:
        client = new_client(
            endpoint=server.endpoint or None,
            region=server.region,
            access_key=server.access_key,
            secret_key=server.secret_key,
        )
        opened.append(Bucket(client, name=server.bucket, prefix=prefix))
        return opened[-1]

    yield open_it
    for bucket in opened:
        for left in list(bucket.listed()):
            bucket.delete(left.key)
        bucket.close()


@pytest.fixture
def store(store_kind: str, request: pytest.FixtureRequest, tmp_path: Path, open_bucket: OpenBucket) -> ArtifactStore:
    if store_kind == "folder":
        return FolderArtifacts(tmp_path / "kept")
    # Parts may not be smaller than this; files of the tests that are larger go in parts.
    return BucketArtifacts(open_bucket(request.getfixturevalue(store_kind)), part_bytes=5 << 20)


def _live_server() -> S3Server:
    bucket = load_settings(os.environ).bucket
    assert bucket.name is not None, "set STATIONMASTER_BUCKET__NAME and its keys"
    assert bucket.access_key is not None
    assert bucket.secret_key is not None
    return S3Server(
        endpoint=bucket.endpoint or "",
        bucket=bucket.name,
        access_key=bucket.access_key.get_secret_value(),
        secret_key=bucket.secret_key.get_secret_value(),
        region=bucket.region,
    )
