"""Each test runs on a folder and on buckets of real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from s3_servers import S3Server
from stationmaster.delivery.artifact_store import ArtifactStore, BucketStore, FolderStore
from stationmaster.delivery.object_store import Bucket
from stationmaster.delivery.s3_client import new_client

OpenBucket = Callable[[S3Server], Bucket]


@pytest.fixture
def open_bucket(request: pytest.FixtureRequest) -> Iterator[OpenBucket]:
    """Opens the server's bucket below a prefix of the test's own."""
    opened: list[Bucket] = []

    def open_it(server: S3Server) -> Bucket:
        client = new_client(
            endpoint=server.endpoint,
            region=server.region,
            access_key=server.access_key,
            secret_key=server.secret_key,
        )
        opened.append(Bucket(client, name=server.bucket, prefix=f"test-{abs(hash(request.node.nodeid))}"))
        return opened[-1]

    yield open_it
    for bucket in opened:
        bucket.close()


@pytest.fixture(params=["folder", "rclone", "seaweed"])
def store(request: pytest.FixtureRequest, tmp_path: Path, open_bucket: OpenBucket) -> ArtifactStore:
    if request.param == "folder":
        return FolderStore(tmp_path / "kept")
    server: S3Server = request.getfixturevalue(request.param)
    # Parts may not be smaller than this; files of the tests that are larger go in parts.
    return BucketStore(open_bucket(server), part_bytes=5 << 20)
