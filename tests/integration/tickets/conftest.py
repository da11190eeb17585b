"""Upload tickets on a bucket that enforces what is signed, and a machine with a real trackside."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from stationmaster.control.destinations.job_bucket import JobBucket
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.delivery.artifact_store import BucketArtifacts
from stationmaster.delivery.bucket import Bucket
from stationmaster.delivery.s3_client import new_client
from stationmaster.remote.host import Host
from stationmaster.remote.local import LocalRemote
from stationmaster.remote.pyz import build_pyz
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.machines.trackside_bench import interpreters, trackside_server
from tests.support.servers.s3_servers import S3Server

OpenJobBucket = Callable[..., JobBucket]


@pytest.fixture(scope="session")
def made_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store's file to copy: making the schema costs more than most tests."""
    path = tmp_path_factory.mktemp("made") / "store.db"
    Store(Database(f"sqlite:///{path}")).close()
    return path


@pytest.fixture
def store(tmp_path: Path, made_store: Path) -> Iterator[Store]:
    shutil.copyfile(made_store, tmp_path / "store.db")
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as opened:
        yield opened


@pytest.fixture
def open_job_bucket(seaweed: S3Server, store: Store) -> Iterator[OpenJobBucket]:
    with ExitStack() as opened:
        prefix = f"test-{secrets.token_hex(4)}"

        def open_it(
            server: S3Server = seaweed,
            *,
            seconds: float = 900.0,
            largest_put_bytes: int = 1 << 30,
            public_url: str | None = None,
        ) -> JobBucket:
            client = new_client(
                endpoint=server.endpoint,
                region=server.region,
                access_key=server.access_key,
                secret_key=server.secret_key,
            )
            bucket = Bucket(client, name=server.bucket, prefix=prefix)
            tickets = UploadTickets(
                store.tickets, bucket, seconds=seconds, largest_put_bytes=largest_put_bytes, part_bytes=5 << 20
            )
            job_bucket = JobBucket(
                bucket=bucket, artifacts=BucketArtifacts(bucket), tickets=tickets, public_url=public_url
            )
            opened.callback(job_bucket.close)
            return job_bucket

        yield open_it


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_pyz(tmp_path_factory.mktemp("pyz"))


@pytest.fixture(scope="session")
def oldest_python() -> str:
    return interpreters()[0]


@pytest.fixture
def host(tmp_path: Path, pyz: Path) -> Host:
    """A machine that is a folder; its trackside runs in forks."""
    return _host(tmp_path, pyz, trackside_server().python)


@pytest.fixture
def old_host(tmp_path: Path, pyz: Path, oldest_python: str) -> Host:
    """The same with a process for each verb, of the oldest Python that there is."""
    return _host(tmp_path, pyz, oldest_python)


def _host(tmp_path: Path, pyz: Path, python: str) -> Host:
    root = tmp_path / "machine"
    (root / "output").mkdir(parents=True)
    (root / "trackside.pyz").write_bytes(pyz.read_bytes())
    return Host(LocalRemote(root=tmp_path, environment={"PATH": "/usr/bin:/bin"}), root=str(root), python=python)
