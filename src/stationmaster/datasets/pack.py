"""Packs a dataset into one tar file whose bytes depend only on the content, and hashes it while writing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from stationmaster.datasets.archive_writer import ArchiveWriter, Compression, new_compressor, write_all
from stationmaster.datasets.tar_header import BLOCK, RECORD, file_header, folder_header
from stationmaster.datasets.tree import (
    TreeEntry,
    TreeEntryKind,
    changed,
    files_of,
    identity_of,
    open_unchanged,
    read_unchanged,
    scan,
    shown,
)
from stationmaster.errors import DatasetInvalid, DiskFull, UserError
from stationmaster.files import rename_durably

#: Called with (bytes packed so far, bytes of all files).
Progress = Callable[[int, int], None]

_CHUNK = 1 << 20
_SMALL = 1 << 16  # read at once
_PADDING = bytes(BLOCK)
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")  # zstd, gzip, bzip2, xz
_FORMAT = "stationmaster-dataset/1"


class FileRecord(NamedTuple):
    """One file. A NamedTuple because it is created faster, as `TreeEntry`."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Path, size and SHA-256 of every file of a dataset, in packing order (by the bytes of their paths)."""

    files: tuple[FileRecord, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def fingerprint(self) -> str:
        """The same for the same content, on any machine and with any compression."""
        content = [[file.path, file.size, file.sha256] for file in self.files]
        canonical = json.dumps({"format": _FORMAT, "files": content}, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """The file that is written beside an archive; its keys are stable."""
        return {
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "file_count": len(self.files),
            "total_bytes": self.total_bytes,
            "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in self.files],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A complete archive on disk. `sha256` and `size` are those of the archive file."""

    path: Path
    sha256: str
    size: int
    files: int
    manifest: Manifest

    @property
    def fingerprint(self) -> str:
        return self.manifest.fingerprint


def pack(
    folder: Path, target: Path, *, compression: Compression = Compression.NONE, progress: Progress | None = None
) -> Packed:
    """Write `folder` as the tar file `target`, atomically; hidden files are skipped.

    Names are sorted, owner, mode and time are fixed: the same content gives the same bytes on any machine.
    Raises DatasetInvalid (a file changed meanwhile, links out of the folder, cannot be read) and DiskFull.
    """
    return _pack(folder, target.parent, lambda _: target, compression, progress)


def pack_into(
    folder: Path, directory: Path, *, compression: Compression = Compression.NONE, progress: Progress | None = None
) -> Packed:
    """As `pack`, into `directory`, named by the archive's SHA-256."""
    suffix = ".tar" if compression is Compression.NONE else ".tar.zst"
    return _pack(folder, directory, lambda sha256: directory / f"{sha256}{suffix}", compression, progress)


def require_replaceable(target: Path, *, force: bool = False) -> None:
    """Raise UserError if `target` exists and is not an archive, unless `force`."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise _unwritable(target.parent, exc) from exc
    if stat.S_ISDIR(mode):
        return
    if not stat.S_ISREG(mode):
        raise UserError(f"{shown(str(target))} is neither a file nor a folder", hint="choose another name")
    if not force and not _is_archive(target):
        raise UserError(
            f"{shown(str(target))} exists and is not an archive", hint="choose another name, or pass --force"
        )


def _is_archive(path: Path) -> bool:
    """Whether it is a tar file, plain or compressed, by its first bytes; an empty file may be replaced too."""
    try:
        with path.open("rb") as file:
            head = file.read(BLOCK)
    except OSError:
        return False
    return not head or head.startswith(_COMPRESSED) or head[257:262] == b"ustar"


def write_manifest(packed: Packed) -> Path:
    """Write the manifest next to the archive and return its path; may be repeated."""
    path = packed.path.with_name(packed.path.name + ".manifest.json")
    with _new_file(path.parent) as (temporary, file):
        write_all(file, json.dumps(packed.manifest.to_json(), indent=1).encode())
        rename_durably(temporary, path)
    return path


def fingerprint(folder: Path) -> str:
    """The manifest's hash, as `pack` would compute it; writes nothing."""
    return read_manifest(folder).fingerprint


def read_manifest(folder: Path) -> Manifest:
    """Hash every file of `folder` that `pack` would include."""
    return Manifest(files=tuple(record_file(entry, _ignore) for entry in _packable(folder)))


def record_file(entry: TreeEntry, take: Callable[[bytes], None]) -> FileRecord:
    """Read one file, pass its bytes to `take`, and hash it. Raises DatasetInvalid if it changed meanwhile."""
    digest = hashlib.sha256()
    left = entry.size
    with open_unchanged(entry) as file:
        while left and (data := _read(file, min(_CHUNK, left), entry)):
            digest.update(data)
            take(data)
            left -= len(data)
        if left or identity_of(os.fstat(file.fileno())) != entry.identity:
            raise changed(entry)
    return FileRecord(path=entry.path, size=entry.size, sha256=digest.hexdigest())


def _pack(
    folder: Path,
    directory: Path,
    name: Callable[[str], Path],
    compression: Compression,
    progress: Progress | None,
) -> Packed:
    entries = _packable(folder)
    _prepare(directory, folder)
    compressor = new_compressor(compression)
    if compressor is None:
        _require_room(directory, sum(entry.size for entry in entries) + 3 * BLOCK * len(entries))
    with _new_file(directory) as (temporary, file):
        with ArchiveWriter(file, compressor) as archive:
            manifest = Manifest(files=tuple(_write_tar(entries, archive, progress)))
        target = name(archive.sha256)
        rename_durably(temporary, target)
    return Packed(path=target, sha256=archive.sha256, size=archive.size, files=len(entries), manifest=manifest)


def _prepare(directory: Path, folder: Path) -> None:
    if directory.resolve().is_relative_to(folder.resolve()):
        raise UserError(
            f"the archive would be inside the dataset folder {shown(str(folder))}",
            hint="write it elsewhere, or it becomes part of the dataset",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise _unwritable(directory, exc) from exc


def _packable(folder: Path) -> tuple[TreeEntry, ...]:
    entries = scan(folder)
    for entry in entries:
        if entry.kind is not TreeEntryKind.FILE and entry.kind is not TreeEntryKind.HIDDEN:
            raise DatasetInvalid(
                f"{shown(entry.path)} cannot be packed: {_UNPACKABLE[entry.kind]}",
                hint="run `stationmaster dataset check` for the whole list",
            )
    files = files_of(entries)
    _require_text(files)
    if not files:
        raise DatasetInvalid(f"{shown(str(folder))} contains no files to pack", hint="check the path of the dataset")
    return files


_UNPACKABLE = {
    TreeEntryKind.LINK_OUT: "it is a link out of the folder",
    TreeEntryKind.LINK_BROKEN: "it is a broken link",
    TreeEntryKind.LINK_TO_FOLDER: "it is a link to a folder",
    TreeEntryKind.SPECIAL: "it is neither a file nor a folder",
    TreeEntryKind.UNREADABLE: "you have no permission to read it",
}


def _require_text(files: tuple[TreeEntry, ...]) -> None:
    """Raise DatasetInvalid for a name that is not UTF-8; all names at once, because one by one is slow."""
    try:
        "".join([entry.path for entry in files]).encode("utf-8")
    except UnicodeEncodeError:
        broken = next(entry for entry in files if not _is_text(entry.path))
        raise DatasetInvalid(
            f"the name of {shown(broken.path)} is not UTF-8",
            hint="rename the file, or let `stationmaster dataset check --fix` do it in a copy",
        ) from None


def _is_text(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _require_room(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise DiskFull(
            f"the archive needs {needed / 1e6:,.1f} MB in {shown(str(directory))}; {free / 1e6:,.1f} MB are free",
            hint="free disk space, or write the archive to another disk",
        )


@contextmanager
def _new_file(directory: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A temporary file; removed unless it was renamed."""
    temporary = directory / f".{secrets.token_hex(8)}.partial"
    try:
        with temporary.open("xb", buffering=0) as file:
            yield temporary, file
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"the disk of {shown(str(directory))} is full", hint="free disk space; the partial archive was removed"
            ) from exc
        raise _unwritable(directory, exc) from exc
    finally:
        if directory.is_dir():
            temporary.unlink(missing_ok=True)


def _unwritable(directory: Path, exc: OSError) -> UserError:
    return UserError(
        f"cannot write to {shown(str(directory))}: {exc.strerror or exc}",
        hint="choose a folder that exists and that you can write to",
    )


def _write_tar(
    entries: tuple[TreeEntry, ...], archive: ArchiveWriter, progress: Progress | None
) -> Iterator[FileRecord]:
    written_folders: set[str] = set()
    told = _Told(progress, sum(entry.size for entry in entries))
    for entry in entries:
        if "/" in entry.path and entry.folder not in written_folders:
            for folder in _parents(entry.path):
                if folder not in written_folders:
                    written_folders.add(folder)
                    archive.write(folder_header(folder))
        yield _write_small(entry, archive) if entry.size <= _SMALL else _write_large(entry, archive, told)
        if entry.size <= _SMALL:
            told.add(entry.size)
    archive.write(bytes(2 * BLOCK))
    archive.write(bytes(-archive.received % RECORD))


class _Told:
    """How many bytes of all files are packed, for who wants to know."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(self._done, self._total)


def _parents(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _write_small(entry: TreeEntry, archive: ArchiveWriter) -> FileRecord:
    """In as few calls as can be: sets of captions have tens of thousands of these."""
    path, size, data = entry.path, entry.size, read_unchanged(entry)
    archive.write(file_header(path, size) + data + _PADDING[: -size % BLOCK])
    return FileRecord(path, size, hashlib.sha256(data).hexdigest())


def _write_large(entry: TreeEntry, archive: ArchiveWriter, told: _Told) -> FileRecord:
    def take(data: bytes) -> None:
        archive.write(data)
        told.add(len(data))

    archive.write(file_header(entry.path, entry.size))
    record = record_file(entry, take)
    archive.write(_PADDING[: -entry.size % BLOCK])
    return record


def _read(file: BinaryIO, size: int, entry: TreeEntry) -> bytes:
    try:
        return file.read(size)
    except OSError as exc:
        raise DatasetInvalid(
            f"{shown(entry.path)} cannot be read: {exc.strerror}", hint="copy the dataset to another disk"
        ) from exc


def _ignore(_: bytes) -> None:
    """Discard the bytes: only the hash is needed."""
