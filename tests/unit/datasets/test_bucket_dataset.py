"""What a bucket says of its objects, read as hashes only where it is one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stationmaster.datasets.sources.bucket_dataset import BucketDataset
from stationmaster.datasets.sources.cache import fetch_into_cache
from stationmaster.errors import DatasetInvalid


@dataclass(frozen=True)
class Held:
    key: str
    etag: str
    content: bytes
    etag_is_md5: bool = True

    @property
    def size(self) -> int:
        return len(self.content)


@dataclass(frozen=True)
class Objects:
    held: dict[str, Held] = field(default_factory=dict)

    def listed(self, prefix: str = "") -> Iterator[Held]:
        yield from (one for key, one in sorted(self.held.items()) if key.startswith(prefix))

    def head(self, key: str) -> Held | None:
        return self.held.get(key)

    def read(self, key: str, *, offset: int = 0, etag: str | None = None) -> Iterator[bytes]:
        assert etag == self.held[key].etag
        yield self.held[key].content[offset:]


def files(*held: Held, key: str = "cats") -> BucketDataset:
    return BucketDataset(bucket=Objects({one.key: one for one in held}), key=key)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_an_etag_that_is_a_hash_must_fit(tmp_path: Path) -> None:
    good = Held("cats/one.txt", md5(b"ohwx"), b"ohwx")
    assert (fetch_into_cache(files(good), "s3://set", tmp_path) / "one.txt").read_bytes() == b"ohwx"
    with pytest.raises(DatasetInvalid):
        fetch_into_cache(files(Held("cats/one.txt", md5(b"ohwx"), b"bad!")), "s3://other", tmp_path)


def test_the_etag_of_an_encrypted_object_or_of_one_in_parts_is_no_hash(tmp_path: Path) -> None:
    encrypted = Held("cats/one.txt", md5(b"anything"), b"ohwx", etag_is_md5=False)
    in_parts = Held("cats/two.txt", f"{md5(b'anything')}-2", b"two")
    folder = fetch_into_cache(files(encrypted, in_parts), "s3://set", tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"one.txt": b"ohwx", "two.txt": b"two"}


def test_a_prefix_ends_where_a_folder_would_and_markers_of_folders_are_no_files() -> None:
    names = ("cats/", "cats/a.txt", "cats/deep/b.txt", "cats-and-dogs/c.txt", "catsup.txt")
    held = [Held(name, md5(b""), b"") for name in names]
    assert [file.path for file in files(*held).listed()] == ["a.txt", "deep/b.txt"]
    assert [file.path for file in files(*held, key="catsup.txt").listed()] == ["catsup.txt"]
    assert [file.path for file in files(*held, key="").listed()] == [name for name in sorted(names) if name[-1] != "/"]
