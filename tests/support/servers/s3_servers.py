"""S3 servers for tests: rclone (objects are plain files) and SeaweedFS (enforces conditions and checksums)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.servers.ports import PARTNER, own_port

ACCESS_KEY = "test-access-key"
SECRET_KEY = "test-secret-key-planted"
BUCKET = "models"
_START_SECONDS = 45.0
_TRIES = 3
_SAID_LAST = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server with one empty bucket; `folder` holds the objects as files where the server keeps them so."""

    endpoint: str
    folder: Path | None = None
    bucket: str = BUCKET
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    region: str = "auto"

    def environment(self) -> dict[str, str]:
        """The settings that name this bucket, for a command's environment."""
        return {
            "STATIONMASTER_BUCKET__NAME": self.bucket,
            "STATIONMASTER_BUCKET__ENDPOINT": self.endpoint,
            "STATIONMASTER_BUCKET__ACCESS_KEY": self.access_key,
            "STATIONMASTER_BUCKET__SECRET_KEY": self.secret_key,
        }


@contextmanager
def rclone_s3(folder: Path) -> Iterator[S3Server]:
    """`rclone serve s3` on a folder; neither conditions nor checksums of a PUT are looked at."""
    (folder / BUCKET).mkdir(parents=True)

    def order() -> tuple[list[str], S3Server]:
        port = own_port()
        argv = [_program("rclone"), "serve", "s3", "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--addr"]
        argv += [f"127.0.0.1:{port}", "--config", str(folder / "none.conf"), "--vfs-cache-mode", "off", str(folder)]
        return argv, S3Server(endpoint=f"http://127.0.0.1:{port}", folder=folder / BUCKET)

    with _started(order, folder / "rclone.log") as server:
        yield server


@contextmanager
def seaweed_s3(folder: Path) -> Iterator[S3Server]:
    """SeaweedFS: `If-None-Match`, checksums, signed lengths and expiry are enforced."""
    folder.mkdir(parents=True, exist_ok=True)
    identity = {
        "name": "test",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "identities.json"
    config.write_text(json.dumps({"identities": [identity]}))
    data = folder / "data"
    data.mkdir()

    def order() -> tuple[list[str], S3Server]:
        ports = {name: own_port() for name in ("s3", "master", "volume", "filer")}
        argv = [_program("weed"), f"-logdir={folder}"]  # by itself it leaves its logs where all temporary files are
        argv += ["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={data}", "-s3"]
        argv += [f"-s3.port={ports['s3']}", f"-s3.port.grpc={ports['s3'] + PARTNER}", f"-s3.config={config}"]
        argv += [f"-{name}.port={port}" for name, port in ports.items() if name != "s3"]
        argv += ["-volume.max=8", "-master.volumeSizeLimitMB=64", "-volume.preStopSeconds=0"]
        argv += ["-s3.port.iceberg=0", "-s3.port.lance=0"]  # off: their ports are fixed, and two servers would clash
        return argv, S3Server(endpoint=f"http://127.0.0.1:{ports['s3']}")

    with _started(order, folder / "weed.log", make_bucket=True) as server:
        yield server


def raw_client(server: S3Server) -> Any:
    """boto3's own client, to look at a bucket past our code."""
    # Slow, and every test session reads this file.
    import boto3  # type: ignore[import-untyped]  # it ships no types
    from botocore.config import Config  # type: ignore[import-untyped]  # likewise

    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name=server.region,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def _program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else str(shutil.which(name))


class _NotReady(Exception):
    """The server has exited, as it does where one of its ports is taken, or takes no object however long one waits."""


@contextmanager
def _started(
    order: Callable[[], tuple[list[str], S3Server]], log: Path, *, make_bucket: bool = False
) -> Iterator[S3Server]:
    for left in reversed(range(_TRIES)):
        argv, server = order()
        with _running(argv, log) as process:
            try:
                _wait_until_ready(server, process, make_bucket=make_bucket)
            except _NotReady as why:
                if left:
                    continue
                raise RuntimeError(f"{argv[0]}: {why}. It said last:\n{log.read_text()[-_SAID_LAST:]}") from why
            yield server
            return


@contextmanager
def _running(argv: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as said:
        process = subprocess.Popen(argv, stdout=said, stderr=said, env={**os.environ, "HOME": str(log.parent)})
        try:
            yield process
        finally:
            process.kill()  # nothing that it holds is wanted any more
            process.wait()


def _wait_until_ready(server: S3Server, process: subprocess.Popen[bytes], *, make_bucket: bool) -> None:
    """Ready is a server that has taken and returned an object; listening comes long before that."""
    client = raw_client(server)
    deadline = time.monotonic() + _START_SECONDS
    with contextlib.closing(client):
        while True:
            if process.poll() is not None:
                raise _NotReady(f"it exited with {process.returncode}")
            try:
                httpx.get(server.endpoint, timeout=5, verify=False)
                if make_bucket and not _has_bucket(client, server.bucket):
                    client.create_bucket(Bucket=server.bucket)
                client.put_object(Bucket=server.bucket, Key="ready", Body=b"ready")
                client.delete_object(Bucket=server.bucket, Key="ready")
                return
            except Exception as why:
                if time.monotonic() > deadline:
                    raise _NotReady(f"not ready after {_START_SECONDS:.0f} s ({why})") from why
                time.sleep(0.1)


def _has_bucket(client: Any, name: str) -> bool:
    return any(one["Name"] == name for one in client.list_buckets()["Buckets"])
