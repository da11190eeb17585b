"""Datasets in buckets and on the Hub: fetched once, verified, resumed, and never a file where none should be."""

from __future__ import annotations

import hashlib
import io
import secrets
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings
from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.sources.bucket_dataset import BucketDataset
from stationmaster.datasets.sources.cache import fetch_into_cache
from stationmaster.datasets.sources.hub_dataset import HubDataset
from stationmaster.datasets.sources.reference import BucketReference, HubReference, UploadReference, parse_reference
from stationmaster.datasets.sources.remote_dataset import RemoteFile
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import ConfigInvalid, DatasetInvalid, DeliveryBusy, DeliveryRefused, NotFound, UserError
from stationmaster.settings import Settings
from stationmaster.station.local.dataset_sources import fetch_dataset
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from tests.support.servers.s3_servers import S3Server

FILES = {
    "one.png": b"\x89PNG" + bytes(5000),
    "one.txt": b"ohwx, a cat",
    "deep/two with spaces & ümlaut.txt": b"ohwx, two",
    "empty.txt": b"",
}


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def settings(tmp_path: Path, **environ: str) -> Settings:
    return load_settings({"STATIONMASTER_HOME": str(tmp_path / "home"), **environ}, folder=tmp_path)


def put(server: S3Server, source: BucketReference, files: dict[str, bytes], at: Settings) -> None:
    with closing(open_other_bucket(at.bucket, server.bucket)) as bucket:
        for path, content in files.items():
            bucket.put(f"{source.key}/{path}", content, sha256=hashlib.sha256(content).hexdigest())


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def prefix() -> str:
    return f"datasets-{secrets.token_hex(4)}/cats"


@pytest.mark.parametrize("name", ["rclone", "seaweed"])
def test_a_prefix_of_a_bucket_comes_home_whole(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: S3Server = request.getfixturevalue(name)
    at = settings(tmp_path, **server.environment())
    source = BucketReference(bucket=server.bucket, key=prefix())
    put(server, source, FILES, at)
    put(server, BucketReference(bucket=server.bucket, key=f"{source.key}-others"), {"three.txt": b"not mine"}, at)
    home = fetch_dataset(source, at)
    assert content_of(home.path) == FILES
    assert home.source == f"s3://{server.bucket}/{source.key}"


def test_what_is_there_is_not_fetched_again_and_what_changed_is(seaweed: S3Server, tmp_path: Path) -> None:
    at = settings(tmp_path, **seaweed.environment())
    source = BucketReference(bucket=seaweed.bucket, key=prefix())
    put(seaweed, source, FILES, at)
    first = fetch_dataset(source, at).path
    kept = (first / "one.png").stat().st_ino
    (first / "one.txt").write_bytes(b"ohwx, a dog")  # somebody changed the cache: same length, other bytes
    put(seaweed, source, {"empty.txt": b"no longer"}, at)
    with closing(open_other_bucket(at.bucket, seaweed.bucket)) as bucket:
        bucket.delete(f"{source.key}/deep/two with spaces & ümlaut.txt")
    moved: list[int] = []
    second = fetch_dataset(source, at, progress=lambda done, total: moved.append(total - done)).path
    assert content_of(second) == {"one.png": FILES["one.png"], "one.txt": b"ohwx, a cat", "empty.txt": b"no longer"}
    assert (second / "one.png").stat().st_ino == kept
    assert len(moved) == 2
    assert not (second / "deep").exists()


def test_a_fetch_that_was_killed_goes_on_with_what_it_had(seaweed: S3Server, tmp_path: Path) -> None:
    at = settings(tmp_path, **seaweed.environment())
    source = BucketReference(bucket=seaweed.bucket, key=prefix())
    put(seaweed, source, FILES, at)
    folder = fetch_dataset(source, at).path
    kept = (folder / "one.png").stat().st_ino
    (folder.parent / "index.json").unlink()  # written last
    moved: list[int] = []
    assert content_of(fetch_dataset(source, at, progress=lambda done, _: moved.append(done)).path) == FILES
    assert (folder / "one.png").stat().st_ino == kept
    assert moved == []


def test_one_archive_in_a_bucket_is_a_dataset(seaweed: S3Server, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in FILES.items():
            member = tarfile.TarInfo(f"cats/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    at = settings(tmp_path, **seaweed.environment())
    source = BucketReference(bucket=seaweed.bucket, key=f"{prefix()}")
    put(seaweed, source, {"pack.tar": packed.getvalue()}, at)
    for one in (BucketReference(bucket=seaweed.bucket, key=f"{source.key}/pack.tar"), source):
        with open_dataset(fetch_dataset(one, at).path) as folder:
            assert content_of(folder) == FILES


def test_bytes_that_are_not_those_of_the_listing_are_refused(rclone: S3Server, tmp_path: Path) -> None:
    at = settings(tmp_path, **rclone.environment())
    source = BucketReference(bucket=rclone.bucket, key=prefix())
    put(rclone, source, {"one.txt": b"ohwx, a cat"}, at)

    class Lying:
        """A bucket whose bytes rot on the way."""

        def __init__(self, honest: Any) -> None:
            self.listed, self.head, self._read = honest.listed, honest.head, honest.read

        def read(self, key: str, *, offset: int = 0, etag: str | None = None) -> Iterator[bytes]:
            for chunk in self._read(key, offset=offset, etag=etag):
                yield chunk.replace(b"cat", b"dog")

    with closing(open_other_bucket(at.bucket, rclone.bucket)) as bucket, pytest.raises(DatasetInvalid):
        fetch_into_cache(BucketDataset(bucket=Lying(bucket), key=source.key), str(source), tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.txt"))


def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    class Hostile:
        def __init__(self, path: str) -> None:
            self._file = RemoteFile(path=path, key=path, size=1, version="v")

        def listed(self) -> list[RemoteFile]:
            return [self._file]

        def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
            yield b"x"

        def digest_is_of_content(self, file: RemoteFile) -> bool:
            return True

    for path in ("../escape", "/etc/escape", "a/../../escape", "a//b", ".", "a\0b", "./a"):
        with pytest.raises(DatasetInvalid):
            fetch_into_cache(Hostile(path), "s3://hostile/set", tmp_path / "cache")
    assert not list(tmp_path.rglob("escape"))


def test_an_empty_prefix_a_missing_bucket_and_a_missing_key_are_told(seaweed: S3Server, tmp_path: Path) -> None:
    at = settings(tmp_path, **seaweed.environment())
    with pytest.raises(NotFound):
        fetch_dataset(BucketReference(bucket=seaweed.bucket, key="nothing/here"), at)
    with pytest.raises(DeliveryRefused):
        fetch_dataset(BucketReference(bucket="nosuchbucket", key="cats"), at)
    with pytest.raises(ConfigInvalid):
        fetch_dataset(BucketReference(bucket="any", key="cats"), settings(tmp_path))


def hub_settings(tmp_path: Path, hub: HubServer, **environ: str) -> Settings:
    return settings(tmp_path, STATIONMASTER_HUB__URL=hub.url, **environ)


LARGE = {"pictures/large.png": bytes(range(256)) * 20_000}  # an LFS file


def test_a_dataset_of_the_hub_comes_home_at_one_commit(hub: HubServer, tmp_path: Path) -> None:
    repo = hub.add_repo(
        "anna/cats", {**FILES, **LARGE, "README.md": b"# Cats", ".gitattributes": b"*.png lfs"}, kind="dataset"
    )
    home = fetch_dataset(HubReference(repository="anna/cats"), hub_settings(tmp_path, hub))
    assert content_of(home.path) == {**FILES, **LARGE}
    assert home.source == f"hf://datasets/anna/cats@{repo.head}"


def test_a_file_of_the_hub_that_broke_off_is_taken_up_again(hub: HubServer, tmp_path: Path) -> None:
    hub.add_repo("anna/cats", LARGE, kind="dataset")
    files = HubDataset(url=hub.url, repository="anna/cats", revision=None, token=None)

    class Cut:
        """The line is cut in the middle, twice."""

        listed, digest_is_of_content, cuts = files.listed, files.digest_is_of_content, 2

        def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
            for chunk in files.read(file, offset=offset):
                yield chunk
                if self.cuts:
                    self.cuts -= 1
                    raise DeliveryBusy("the line is cut")

    with closing(files):
        folder = fetch_into_cache(Cut(), "hf://datasets/anna/cats", tmp_path / "cache")
    assert content_of(folder) == LARGE
    offsets = [one.headers.get("range") for one in hub.asked("GET .*large.png")]
    assert offsets[0] is None
    assert len(set(offsets)) == 3


def test_a_gated_dataset_is_refused_without_access_and_given_with_it(hub: HubServer, tmp_path: Path) -> None:
    hub.users["hf_other"] = "bert"
    hub.add_repo("acme/secret", {"one.txt": b"ohwx"}, kind="dataset", granted=frozenset({"anna"}))
    source = HubReference(repository="acme/secret")
    for environ in ({}, {"HF_TOKEN": "hf_other"}):
        with pytest.raises(DeliveryRefused) as told:
            fetch_dataset(source, hub_settings(tmp_path, hub, **environ))
        assert told.value.hint
        assert "hf_other" not in f"{told.value} {told.value.hint}"
    home = fetch_dataset(source, hub_settings(tmp_path, hub, HF_TOKEN=HUB_TOKEN))
    assert content_of(home.path) == {"one.txt": b"ohwx"}


def test_a_hub_that_is_busy_or_does_not_know_the_dataset_says_so(hub: HubServer, tmp_path: Path) -> None:
    at = hub_settings(tmp_path, hub, HF_TOKEN=HUB_TOKEN)
    with pytest.raises((NotFound, DeliveryRefused)):
        fetch_dataset(HubReference(repository="anna/none"), at)
    hub.add_repo("anna/cats", {"one.txt": b"ohwx"}, kind="dataset")
    with pytest.raises(NotFound):
        fetch_dataset(HubReference(repository="anna/cats", revision="nosuch"), at)
    hub.refuse("GET /api/datasets", 503)
    with pytest.raises(DeliveryBusy):
        fetch_dataset(HubReference(repository="anna/cats"), at)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("s3://pictures/cats", BucketReference(bucket="pictures", key="cats")),
        ("s3://pictures/a/b/", BucketReference(bucket="pictures", key="a/b")),
        ("s3://pictures", BucketReference(bucket="pictures", key="")),
        ("hf://datasets/anna/cats", HubReference(repository="anna/cats")),
        ("hf://datasets/anna/cats@v1.0", HubReference(repository="anna/cats", revision="v1.0")),
        (f"upload:{'0a' * 16}", UploadReference(id="0a" * 16)),
        (UploadReference(id="0a" * 16, label="my (old) cats").described, UploadReference(id="0a" * 16)),
        ("./cats", Path("cats")),
        ("./upload:cats", Path("upload:cats")),
    ],
)
def test_a_dataset_is_known_by_how_it_is_written(text: str, source: Any) -> None:
    assert parse_reference(text) == source


@pytest.mark.parametrize(
    "text", ["s3://", "s3:///x", "s3://a", "hf://anna/cats", "hf://datasets/anna", "hf://datasets/a/b/c",
             "https://example.com/cats.zip", "upload:", "upload:../x", "upload:cats", "hf://datasets/anna/cats@../x"],
)  # fmt: skip
def test_what_cannot_be_a_dataset_is_told_with_a_hint(text: str) -> None:
    with pytest.raises(UserError) as told:
        parse_reference(text)
    assert told.value.hint
