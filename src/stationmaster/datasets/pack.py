"""A dataset as one archive whose bytes depend on its content alone, hashed while it is written."""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import os
import secrets
import shutil
import tarfile
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

from stationmaster.datasets.manifest import FileRecord, Manifest
from stationmaster.datasets.tree import (
    Entry,
    EntryKind,
    changed,
    files_of,
    identity_of,
    open_unchanged,
    scan,
    shown,
)
from stationmaster.errors import DatasetInvalid, DiskFull, UserError

_CHUNK = 1 << 20
_LARGE = 1 << 16
_PENDING_CHUNKS = 8  # bounds the memory between the reading and the writing thread


class Compression(StrEnum):
    NONE = "none"
    ZSTD = "zstd"  # smaller text sets; its bytes may differ between versions of the library


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An archive that is whole and on the disk. `sha256` and `size` are the archive file's own."""

    path: Path
    sha256: str
    size: int
    files: int
    manifest: Manifest

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint


def pack(folder: Path, target: Path, *, compression: Compression = Compression.NONE) -> Packed:
    """Write `folder` as the tar file `target`, all of it or nothing; hidden files are left out.

    Names are sorted, owner, mode and time are fixed: the same content gives the same bytes on any machine.
    Raises DatasetInvalid (a file changed meanwhile, leads out of the folder, cannot be read) and DiskFull.
    """
    return _pack(folder, target.parent, lambda _: target, compression)


def pack_into(folder: Path, directory: Path, *, compression: Compression = Compression.NONE) -> Packed:
    """As `pack`, into `directory` under a name made of the archive's own SHA-256."""
    suffix = ".tar" if compression is Compression.NONE else ".tar.zst"
    return _pack(folder, directory, lambda sha256: directory / f"{sha256}{suffix}", compression)


def write_manifest(packed: Packed) -> Path:
    """Write the manifest beside the archive; its path. Repeating it changes nothing."""
    path = packed.path.with_name(packed.path.name + ".manifest.json")
    with _new_file(path.parent) as (temporary, file):
        _write_all(file, json.dumps(packed.manifest.to_json(), indent=1).encode())
        os.fsync(file.fileno())
        temporary.replace(path)
    _sync_folder(path.parent)
    return path


def fingerprint(folder: Path) -> str:
    """The manifest's hash: what `pack` would give, without writing anything."""
    return read_manifest(folder).fingerprint


def read_manifest(folder: Path) -> Manifest:
    """Every packed file of `folder` with its hash."""
    return Manifest(files=tuple(_record(entry, _ignore) for entry in _packable(folder)))


def _pack(folder: Path, directory: Path, name: Callable[[str], Path], compression: Compression) -> Packed:
    directory.mkdir(parents=True, exist_ok=True)
    if directory.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"the archive would lie inside the dataset folder {shown(str(folder))}",
            hint="write it somewhere else, or it would become part of the dataset",
        )
    entries = _packable(folder)
    compressor = _compressor(compression)
    if compressor is None:
        _require_room(directory, sum(entry.size for entry in entries) + 3 * tarfile.BLOCKSIZE * len(entries))
    with _new_file(directory) as (temporary, file):
        with _Archive(file, compressor) as archive:
            manifest = Manifest(files=tuple(_write_tar(entries, archive)))
        os.fsync(file.fileno())
        target = name(archive.sha256)
        temporary.replace(target)
    _sync_folder(directory)
    return Packed(path=target, sha256=archive.sha256, size=archive.size, files=len(entries), manifest=manifest)


def _packable(folder: Path) -> tuple[Entry, ...]:
    entries = scan(folder)
    for entry in entries:
        if entry.kind not in (EntryKind.FILE, EntryKind.HIDDEN):
            raise DatasetInvalid(
                f"{shown(entry.path)} cannot be packed: {_UNPACKABLE[entry.kind]}",
                hint="run `stationmaster dataset check` for the whole list",
            )
        if not _is_text(entry.path):
            raise DatasetInvalid(
                f"the name of {shown(entry.path)} is not UTF-8",
                hint="rename the file, or let `stationmaster dataset check --fix` do it in a copy",
            )
    files = files_of(entries)
    if not files:
        raise DatasetInvalid(f"there is nothing to pack in {shown(str(folder))}", hint="check the path of the dataset")
    return files


_UNPACKABLE = {
    EntryKind.LINK_OUT: "it is a link that leads out of the folder",
    EntryKind.LINK_BROKEN: "it is a link to nothing",
    EntryKind.LINK_TO_FOLDER: "it is a link to a folder",
    EntryKind.SPECIAL: "it is neither a file nor a folder",
    EntryKind.UNREADABLE: "it may not be read",
}


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _compressor(compression: Compression) -> Any:
    if compression is Compression.NONE:
        return None
    try:
        zstandard = importlib.import_module("zstandard")  # an extra: only this choice needs it
    except ModuleNotFoundError as exc:
        raise UserError(
            "zstd compression needs the zstandard module", hint="pip install zstandard, or pack without --zstd"
        ) from exc
    return zstandard.ZstdCompressor(level=3).compressobj()


def _require_room(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise DiskFull(
            f"the archive needs {needed / 1e6:,.1f} MB in {shown(str(directory))}, {free / 1e6:,.1f} MB are free",
            hint="free some room, or write the archive to another disk",
        )


@contextmanager
def _new_file(directory: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file that is gone again unless it was renamed in time."""
    temporary = directory / f".{secrets.token_hex(8)}.partial"
    try:
        with temporary.open("xb", buffering=0) as file:
            yield temporary, file
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"the disk of {shown(str(directory))} is full", hint="free some room; the partial archive was removed"
            ) from exc
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(file: BinaryIO, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]  # a raw file may take less than it is given


class _Archive:
    """Takes the tar's bytes in order; hashes and writes them in a thread beside the one that reads."""

    def __init__(self, file: BinaryIO, compressor: Any) -> None:
        self._file = file
        self._compressor = compressor
        self._whole = hashlib.sha256()
        self._parts: list[bytes] = []
        self._parts_size = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="pack")
        self._pending: deque[Future[None]] = deque()
        self.taken = 0
        self.size = 0
        self.sha256 = ""

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._thread.shutdown(cancel_futures=True)

    def write(self, data: bytes) -> None:
        self.taken += len(data)
        if len(data) >= _LARGE:  # handed over as it is; small pieces are gathered first
            self._hand_over_parts()
            self._hand_over(data)
            return
        self._parts.append(data)
        self._parts_size += len(data)
        if self._parts_size >= _CHUNK:
            self._hand_over_parts()

    def _hand_over_parts(self) -> None:
        if self._parts:
            self._hand_over(b"".join(self._parts))
            self._parts, self._parts_size = [], 0

    def _hand_over(self, data: bytes) -> None:
        self._pending.append(self._thread.submit(self._store, data))
        if len(self._pending) > _PENDING_CHUNKS:
            self._pending.popleft().result()

    def _finish(self) -> None:
        self._hand_over_parts()
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
        _write_all(self._file, data)


def _write_tar(entries: tuple[Entry, ...], archive: _Archive) -> Iterator[FileRecord]:
    written_folders: set[str] = set()
    for entry in entries:
        for folder in _parents(entry.path):
            if folder not in written_folders:
                written_folders.add(folder)
                archive.write(_header(folder, kind=tarfile.DIRTYPE, mode=0o755))
        archive.write(_header(entry.path, kind=tarfile.REGTYPE, mode=0o644, size=entry.size))
        yield _record(entry, archive.write)
        archive.write(bytes(-entry.size % tarfile.BLOCKSIZE))
    archive.write(bytes(2 * tarfile.BLOCKSIZE))
    archive.write(bytes(-archive.taken % tarfile.RECORDSIZE))


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _header(path: str, *, kind: bytes, mode: int, size: int = 0) -> bytes:
    # TarInfo starts with owner 0/0, no owner names and time 0. PAX adds a record only for what plain ustar
    # cannot hold: a long name, one beyond ASCII, a file of 8 GiB and more.
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.size = kind, mode, size
    return info.tobuf(tarfile.PAX_FORMAT, encoding="utf-8", errors="strict")


def _record(entry: Entry, take: Callable[[bytes], None]) -> FileRecord:
    """Read one file through, handing its bytes to `take`; it must be the same file before and after."""
    digest = hashlib.sha256()
    left = entry.size
    with open_unchanged(entry) as file:
        while left and (data := file.read(min(_CHUNK, left))):
            digest.update(data)
            take(data)
            left -= len(data)
        if left or identity_of(os.fstat(file.fileno())) != entry.identity:
            raise changed(entry)
    return FileRecord(path=entry.path, size=entry.size, sha256=digest.hexdigest())


def _ignore(_: bytes) -> None:
    """Only the hash is wanted."""
