"""Opens files that are stored on this computer, in a bucket or on the Hub, to be read in parts."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from stationmaster.control.destinations.destinations import open_hub
from stationmaster.datasets.sources.reference import BucketReference
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import NotFound, TransferFailed
from stationmaster.settings import Settings
from stationmaster.station.stored_file import StoredFile

_CHUNK_BYTES = 256 << 10
_REMOTE_PIECE_BYTES = 4 << 20  # of a bucket or the Hub: one request each


def local_file(path: Path, *, name: str, size: int, sha256: str) -> StoredFile:
    """A file of this computer. Raises NotFound if it is gone or not a plain file, TransferFailed if it has changed."""
    with _opened(path, name=name, size=size):
        pass  # better an error now than a download that breaks off
    return StoredFile(name=name, size=size, sha256=sha256, read=partial(_read_local, path, name, size))


def bucket_file(source: BucketReference, settings: Settings, *, name: str, size: int, sha256: str) -> StoredFile:
    """An object of a bucket. Raises NotFound, TransferFailed, ConfigInvalid without a key, DeliveryError."""
    with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
        found = bucket.head(source.key)
    if found is None:
        raise NotFound(f"{source} does not exist any more")
    if found.size != size:
        raise TransferFailed(f"{name} has changed since it was stored")
    return StoredFile(name=name, size=size, sha256=sha256, read=partial(_read_bucket, source, settings))


def hub_file(address: str, settings: Settings, *, name: str, size: int, sha256: str) -> StoredFile:
    """A file at an hf:// address; what is wrong with it shows when it is read."""
    return StoredFile(name=name, size=size, sha256=sha256, read=partial(_read_hub, address, settings))


@contextmanager
def _opened(path: Path, *, name: str, size: int) -> Iterator[BinaryIO]:
    """The open file. A link is not followed, and a pipe or device is not opened as a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise NotFound(f"{name} is not on this computer any more") from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise NotFound(f"{name} is not a file")
        if about.st_size != size:
            raise TransferFailed(f"{name} has changed since it was stored")
        yield file


def _read_local(path: Path, name: str, size: int, start: int, end: int) -> Iterator[bytes]:
    with _opened(path, name=name, size=size) as file:
        file.seek(start)
        left = end - start
        while left > 0:
            chunk = file.read(min(_CHUNK_BYTES, left))
            if not chunk:
                raise TransferFailed(f"{name} has changed while it was read")
            left -= len(chunk)
            yield chunk


def _read_bucket(source: BucketReference, settings: Settings, start: int, end: int) -> Iterator[bytes]:
    with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
        for first in range(start, end, _REMOTE_PIECE_BYTES):
            wanted = min(_REMOTE_PIECE_BYTES, end - first)
            yield _whole(bucket.read_range(source.key, start=first, size=wanted), wanted, str(source))


def _read_hub(address: str, settings: Settings, start: int, end: int) -> Iterator[bytes]:
    for first in range(start, end, _REMOTE_PIECE_BYTES):
        wanted = min(_REMOTE_PIECE_BYTES, end - first)
        # A loop of its own for each piece: a response is read by changing threads.
        yield _whole(asyncio.run(_piece_of_hub(address, settings, first, wanted)), wanted, address)


async def _piece_of_hub(address: str, settings: Settings, start: int, size: int) -> bytes:
    hub = open_hub(settings)
    try:
        return await hub.read_range(address, start=start, size=size)
    finally:
        await hub.close()


def _whole(piece: bytes, wanted: int, origin: str) -> bytes:
    if len(piece) != wanted:
        raise TransferFailed(f"{origin} has changed since it was stored")
    return piece
