"""Where a job's files are kept: a folder at home, or a bucket, behind one interface."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from stationmaster.delivery.object_store import Bucket
from stationmaster.errors import DeliveryRefused, DiskFull, TransferFailed

#: Called with (bytes moved so far, bytes in all).
Progress = Callable[[int, int], None]

#: Files from this size on go to a bucket in parts of about this size.
PART_BYTES = 16 << 20

_MOST_PARTS = 10_000
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that is kept; `location` is a path or an s3:// address."""

    key: str
    size: int
    location: str


class ArtifactStore(Protocol):
    """A place for files, each under a key such as `JOB/output/model.safetensors`. Call it in a thread.

    Raises DeliveryRefused and DeliveryBusy as the bucket does, and DiskFull.
    """

    @property
    def place(self) -> str:
        """The store's own address, for people."""

    def put(self, key: str, source: Path, *, sha256: str, progress: Progress | None = None) -> Artifact:
        """The key holds the bytes of `source`, read back and verified; what already did is not sent again.

        Raises TransferFailed, and leaves nothing under the key, when `source` does not have this hash.
        """

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        """`target` holds the bytes with this hash; what came before a lost connection is not fetched again.

        Raises TransferFailed when the key holds something else, or nothing; then `target` is as it was.
        """

    def find(self, key: str) -> Artifact | None:
        """What lies under the key."""

    def listed(self, prefix: str) -> list[Artifact]:
        """Everything whose key begins with `prefix`, a whole folder such as `JOB/`, in order."""

    def remove(self, key: str) -> None:
        """Nothing lies under the key, whether or not something did."""


class FolderStore:
    """Files below one folder of this computer."""

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
            _copy(_chunks(source), path, origin=str(source), sha256=sha256, size=size, progress=progress)
        return Artifact(key=key, size=path.stat().st_size, location=str(path))

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        path = self._path(key)
        if not path.is_file():
            raise TransferFailed(f"{path} is not there")
        target.parent.mkdir(parents=True, exist_ok=True)
        size = path.stat().st_size
        _copy(_chunks(path), target, origin=str(path), sha256=sha256, size=size, progress=progress)

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
        return self._folder / _checked(key)


class BucketStore:
    """Files in a bucket."""

    def __init__(self, bucket: Bucket, *, part_bytes: int = PART_BYTES) -> None:
        self._bucket = bucket
        self._part_bytes = part_bytes

    @property
    def place(self) -> str:
        return self._bucket.location()

    def put(self, key: str, source: Path, *, sha256: str, progress: Progress | None = None) -> Artifact:
        _checked(key)
        size = source.stat().st_size
        if self._bucket.holds(key, size=size, sha256=sha256) is None:
            if sha256_of(source) != sha256:
                raise TransferFailed(f"{source} no longer has SHA-256 {sha256}")
            part_sha256s = self._write(key, source, size, sha256, progress)
            if self._bucket.holds(key, size=size, sha256=sha256, part_sha256s=part_sha256s) is None:
                self._bucket.delete(key)
                raise TransferFailed(f"{self._bucket.location(key)} does not hold SHA-256 {sha256} after its upload")
        return Artifact(key=key, size=size, location=self._bucket.location(key))

    def get(self, key: str, target: Path, *, sha256: str, progress: Progress | None = None) -> None:
        found = self._bucket.head(key)
        if found is None:
            raise TransferFailed(f"{self._bucket.location(key)} is not there")
        target.parent.mkdir(parents=True, exist_ok=True)
        part = _part_of(target, sha256)
        offset = part.stat().st_size if part.is_file() and part.stat().st_size < found.size else 0
        coming, origin = self._bucket.read(key, offset=offset, etag=found.etag), self._bucket.location(key)
        _copy(coming, target, origin=origin, sha256=sha256, size=found.size, progress=progress, offset=offset)

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

    def _write(self, key: str, source: Path, size: int, sha256: str, progress: Progress | None) -> list[str]:
        """Put the file there; the hashes of its parts, if it went in parts."""
        if size <= self._part_bytes:
            with source.open("rb") as content:
                self._bucket.put(key, content, sha256=sha256)
            return []
        upload = self._bucket.begin_parts(key)
        try:
            return self._write_parts(key, upload, source, size, progress)
        except BaseException:
            self._bucket.abandon_parts(key, upload)
            raise

    def _write_parts(self, key: str, upload: str, source: Path, size: int, progress: Progress | None) -> list[str]:
        part_sha256s: list[str] = []
        done = 0
        part_bytes = max(self._part_bytes, -(-size // _MOST_PARTS))
        for number, part in enumerate(_chunks(source, part_bytes), start=1):
            self._bucket.put_part(key, upload, number, part)
            part_sha256s.append(hashlib.sha256(part).hexdigest())
            done += len(part)
            if progress is not None:
                progress(done, size)
        etags = self._bucket.arrived_parts(key, upload) or {}
        self._bucket.finish_parts(key, upload, etags, part_sha256s)
        return part_sha256s


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(key: str) -> PurePosixPath:
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in key:
        raise DeliveryRefused(f"{key!r} cannot be the name of a file that is kept")
    return path


def _copy(
    coming: Iterator[bytes],
    target: Path,
    *,
    origin: str,
    sha256: str,
    size: int,
    progress: Progress | None,
    offset: int = 0,
) -> None:
    """`target` gets the bytes once they are whole, on the disk, and have the hash; until then they lie beside it."""
    part = _part_of(target, sha256)
    try:
        with part.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            for chunk in coming:
                file.write(chunk)
                if progress is not None:
                    progress(file.tell(), size)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        part.unlink(missing_ok=True)
        free = shutil.disk_usage(target.parent).free
        raise DiskFull(f"no room for {target}: it has {size:,} bytes, {free:,} are free") from None
    if sha256_of(part) != sha256:
        part.unlink()
        raise TransferFailed(f"{origin} has changed: it does not have SHA-256 {sha256}")
    part.replace(target)


def _part_of(target: Path, sha256: str) -> Path:
    return target.with_name(f".{sha256[:16]}.fetching")


def _chunks(source: Path, chunk_bytes: int = _CHUNK_BYTES) -> Iterator[bytes]:
    with source.open("rb") as file:
        while chunk := file.read(chunk_bytes):
            yield chunk
