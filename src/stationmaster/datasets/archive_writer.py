"""Writes a packed archive: one thread hashes and writes while another reads."""

from __future__ import annotations

import hashlib
import importlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from enum import StrEnum
from typing import Any, BinaryIO

from stationmaster.errors import UserError

_GATHERED = 1 << 20  # small pieces are queued together
_LARGE = 1 << 16  # larger ones are queued alone
_PENDING = 8  # limits the memory between the two threads


class Compression(StrEnum):
    NONE = "none"
    ZSTD = "zstd"  # smaller text sets; its bytes may differ between versions of the library


class ArchiveWriter:
    """Hashes and writes the tar's bytes in order, in a second thread."""

    def __init__(self, file: BinaryIO, compressor: Any) -> None:
        self._file = file
        self._compressor = compressor
        self._whole = hashlib.sha256()
        self._parts: list[bytes] = []
        self._parts_size = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack")
        self._pending: deque[Future[None]] = deque()
        self.received = 0
        self.size = 0
        self.sha256 = ""

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._thread.shutdown(cancel_futures=True)

    def write(self, data: bytes) -> None:
        size = len(data)
        self.received += size
        if size >= _LARGE:
            self._queue_parts()
            self._queue(data)
            return
        self._parts.append(data)
        self._parts_size += size
        if self._parts_size >= _GATHERED:
            self._queue_parts()

    def _queue_parts(self) -> None:
        if self._parts:
            self._queue(b"".join(self._parts))
            self._parts, self._parts_size = [], 0

    def _queue(self, data: bytes) -> None:
        self._pending.append(self._thread.submit(self._store, data))
        if len(self._pending) > _PENDING:
            self._pending.popleft().result()

    def _finish(self) -> None:
        self._queue_parts()
        while self._pending:
            self._pending.popleft().result()
        if self._compressor is not None:
            self._put(self._compressor.flush())
        self.sha256 = self._whole.hexdigest()

    def _store(self, data: bytes) -> None:
        self._put(data if self._compressor is None else self._compressor.compress(data))

    def _put(self, data: bytes) -> None:
        self._whole.update(data)
        self.size += len(data)
        write_all(self._file, data)


def new_compressor(compression: Compression) -> Any:
    """A streaming compressor; None without compression. Raises UserError if its library is not installed."""
    if compression is Compression.NONE:
        return None
    try:
        zstandard = importlib.import_module("zstandard")  # optional dependency
    except ModuleNotFoundError as exc:
        raise UserError(
            "zstd compression needs the zstandard module", hint="pip install zstandard, or pack without --zstd"
        ) from exc
    return zstandard.ZstdCompressor(level=3).compressobj()


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write every byte: a raw file may write only a part of the data."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
