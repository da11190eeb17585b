"""One interface for storing a job's files: in a local folder or in a bucket."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from stationmaster.delivery.bucket import Bucket
from stationmaster.delivery.verified_write import Progress, bytes_there, write_verified
from stationmaster.errors import DeliveryRefused, TransferFailed
from stationmaster.files import sha256_of

#: Files above this size are uploaded to a bucket in parts of about this size.
PART_BYTES = 16 << 20

_MOST_PARTS = 10_000
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A stored file; `location` is a path or an s3:// address."""

    key: str
    size: int
    location: str


class ArtifactStore(Protocol):
    """Stores files, each under a key such as `JOB/output/model.safetensors`. Blocks: call it in a thread.

    Raises DeliveryRefused and DeliveryBusy as `Bucket` does, and DiskFull.
    """

    @property
    def place(self) -> str:
        """The store's address, to show to users."""

    def put(self, key: str, source: Path, *, sha256: str, progress: Progress | None = None) -> Artifact:
        """Store `source` under the key and verify it; a file that is stored already is not sent again.

        Raises TransferFailed, and leaves nothing under the key, if `source` does not have this hash.
        """

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        """Download the key to `target` and verify it; resumes after a lost connection.

        Raises TransferFailed if there is no such key or its content has another hash; `target` is then unchanged.
        """

    def find(self, key: str) -> Artifact | None:
        """The file under the key; None if there is none."""

    def listed(self, prefix: str) -> list[Artifact]:
        """Every file whose key begins with `prefix`, a whole folder such as `JOB/`, ordered by key."""

    def remove(self, key: str) -> None:
        """Remove the file under the key; does nothing if there is none."""


class FolderArtifacts:
    """Stores files in a folder of this computer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    def put(self, key: str, source: Path, *, sha256: str, progress: Progress | None = None) -> Artifact:
        path = self._path(key)
        if not path.is_file() or sha256_of(path) != sha256:
            path.parent.mkdir(parents=True, exist_ok=True)
            size = source.stat().st_size
            write_verified(_chunks(source), path, origin=str(source), sha256=sha256, size=size, progress=progress)
        return Artifact(key=key, size=path.stat().st_size, location=str(path))

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        path = self._path(key)
        if not path.is_file():
            raise TransferFailed(f"{path} does not exist")
        target.parent.mkdir(parents=True, exist_ok=True)
        size = path.stat().st_size
        write_verified(_chunks(path), target, origin=str(path), sha256=sha256, size=size, progress=progress)

    def find(self, key: str) -> Artifact | None:
        path = self._path(key)
        return Artifact(key=key, size=path.stat().st_size, location=str(path)) if path.is_file() else None

    def listed(self, prefix: str) -> list[Artifact]:
        folder = self._path(prefix)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        keys = (path.relative_to(self._folder).as_posix() for path in files)
        return sorted((one for one in map(self.find, keys) if one is not None), key=lambda one: one.key)

    def remove(self, key: str) -> None:
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / _valid_path(key)


class BucketArtifacts:
    """Stores files in a bucket."""

    def __init__(self, bucket: Bucket, *, part_bytes: int = PART_BYTES) -> None:
        self._bucket = bucket
        self._part_bytes = part_bytes

    @property
    def place(self) -> str:
        return self._bucket.location()

    def put(self, key: str, source: Path, *, sha256: str, progress: Progress | None = None) -> Artifact:
        _valid_path(key)
        size = source.stat().st_size
        if self._bucket.holds(key, size=size, sha256=sha256) is None:
            if sha256_of(source) != sha256:
                raise TransferFailed(f"{source} changed: it no longer has SHA-256 {sha256}")
            part_sha256s = self._upload(key, source, size, sha256, progress)
            if self._bucket.holds(key, size=size, sha256=sha256, part_sha256s=part_sha256s) is None:
                self._bucket.delete(key)
                raise TransferFailed(f"{self._bucket.location(key)} does not have SHA-256 {sha256} after its upload")
        return Artifact(key=key, size=size, location=self._bucket.location(key))

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        found = self._bucket.head(key)
        if found is None:
            raise TransferFailed(f"{self._bucket.location(key)} does not exist")
        target.parent.mkdir(parents=True, exist_ok=True)
        offset = bytes_there(target, sha256, size=found.size)
        chunks, origin = self._bucket.read(key, offset=offset, etag=found.etag), self._bucket.location(key)
        write_verified(chunks, target, origin=origin, sha256=sha256, size=found.size, progress=progress, offset=offset)

    def find(self, key: str) -> Artifact | None:
        found = self._bucket.head(key)
        return None if found is None else Artifact(key=key, size=found.size, location=self._bucket.location(key))

    def listed(self, prefix: str) -> list[Artifact]:
        return [
            Artifact(key=one.key, size=one.size, location=self._bucket.location(one.key))
            for one in self._bucket.listed(prefix)
        ]

    def remove(self, key: str) -> None:
        self._bucket.delete(key)

    def _upload(self, key: str, source: Path, size: int, sha256: str, progress: Progress | None) -> list[str]:
        """Upload the file; returns the hashes of its parts, none if it was sent whole."""
        if size <= self._part_bytes:
            with source.open("rb") as content:
                self._bucket.put(key, content, sha256=sha256)
            return []
        upload = self._bucket.begin_parts(key)
        try:
            return self._upload_parts(key, upload, source, size, progress)
        except BaseException:
            self._bucket.abandon_parts(key, upload)
            raise

    def _upload_parts(self, key: str, upload: str, source: Path, size: int, progress: Progress | None) -> list[str]:
        part_sha256s: list[str] = []
        done = 0
        part_bytes = max(self._part_bytes, -(-size // _MOST_PARTS))
        for number, part in enumerate(_chunks(source, part_bytes), start=1):
            self._bucket.put_part(key, upload, number, part)
            part_sha256s.append(hashlib.sha256(part).hexdigest())
            done += len(part)
            if progress is not None:
                progress(done, size)
        etags = self._bucket.list_parts(key, upload) or {}
        self._bucket.finish_parts(key, upload, etags, part_sha256s)
        return part_sha256s


def _valid_path(key: str) -> PurePosixPath:
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in key:
        raise DeliveryRefused(f"{key!r} is not a valid key for a stored file")
    return path


def _chunks(source: Path, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[bytes]:
    with source.open("rb") as file:
        while chunk := file.read(chunk_bytes):
            yield chunk
