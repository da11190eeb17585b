"""Files of a server: read in parts, and saved under their name once they are complete and verified."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx

from stationmaster.delivery.verified_write import bytes_there, write_verified
from stationmaster.errors import ServerError, TransferFailed
from stationmaster.files import sha256_of
from stationmaster.station.http.connection import Connection, Parameters, text_of
from stationmaster.station.stored_file import Progress, StoredFile

_CHUNK_BYTES = 256 << 10
_TRIES = 5  # of a download whose connection breaks off


def remote_file(
    connection: Connection, path: str, parameters: Parameters, *, name: str, size: int, sha256: str
) -> StoredFile:
    return StoredFile(name=name, size=size, sha256=sha256, read=partial(_read, connection, path, parameters, sha256))


def save_file(file: StoredFile, target: Path, *, progress: Progress | None = None) -> None:
    """Download the file to `target` and verify it; goes on behind what an interrupted download left.

    A file that is there already stays. Raises TransferFailed, DiskFull, OSError, and what the server answers.
    """
    if target.is_file() and not target.is_symlink() and _is_same(file, target):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(_TRIES)):
        offset = bytes_there(target, file.sha256, size=file.size)
        chunks = file.read(offset, file.size)
        try:
            write_verified(
                chunks, target, origin=file.name, sha256=file.sha256, size=file.size, progress=progress, offset=offset
            )
            return
        except ServerError:
            is_further = bytes_there(target, file.sha256, size=file.size) > offset
            if not (left and is_further):
                raise


def _is_same(file: StoredFile, target: Path) -> bool:
    return target.stat().st_size == file.size and sha256_of(target) == file.sha256


def _read(
    connection: Connection, path: str, parameters: Parameters, sha256: str, start: int, end: int
) -> Iterator[bytes]:
    if end <= start:
        return
    headers = {
        "Accept": "application/octet-stream",
        "Accept-Encoding": "identity",
        "Range": f"bytes={start}-{end - 1}",
        "If-Range": f'"{sha256}"',
    }
    given = {name: text_of(value) for name, value in parameters.items() if value is not None}
    with (
        connection.errors_of_server(),
        connection.client.stream("GET", path, params=given, headers=headers) as answer,
    ):
        connection.require_success(answer)
        if answer.status_code != httpx.codes.PARTIAL_CONTENT:
            raise TransferFailed(f"{path.rpartition('/')[2]} changed: it does not have SHA-256 {sha256}")
        left = end - start
        for chunk in answer.iter_raw(_CHUNK_BYTES):
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return
