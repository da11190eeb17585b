"""Verified transfers: a file has arrived only when both sides agree on its SHA-256."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from stationmaster.errors import DiskFull, FalseFile, TransferFailed
from stationmaster.files import rename_durably, sha256_of
from stationmaster.remote.base import SMALL_CALL_SECONDS, Progress, Remote, Span, SupportsMany, SupportsSpans
from stationmaster.remote.host import FileHash, Host
from stationmaster.remote.resumable import (
    RESUMABLE_BYTES,
    forget_push,
    pull_spans,
    push_spans,
    spans_to_pull,
    spans_to_push,
)

#: Kept free in addition to the file: a full disk breaks the training, or this computer.
ROOM_TO_SPARE_BYTES = 64 * 2**20

#: A write that fails with less than this free failed because the disk is full.
_FULL_BYTES = 2**20

_TRIES = 2
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A local file, its path in the job's folder, and the hash that must arrive there."""

    local: Path
    path: str
    sha256: str


async def push_verified(host: Host, local: Path, path: str, sha256: str, *, progress: Progress | None = None) -> None:
    """Upload one file, as `push_all_verified`."""
    await push_all_verified(host, [Sending(local=local, path=path, sha256=sha256)], progress=progress)


async def push_all_verified(
    host: Host, files: Sequence[Sending], *, further_bytes: int = 0, progress: Progress | None = None
) -> frozenset[str]:
    """Upload the files that the job's folder does not have with their hash; return the paths sent.

    There must be room for the files and for the `further_bytes` that are made from them. One request asks for all
    hashes: a round trip for each file would take longer than the files. After a lost connection the same call sends
    only what did not arrive. Raises DiskFull before anything is sent or when the disk fills up during the transfer,
    and FalseFile when a hash is wrong twice.
    """
    found = await _far_hashes(host, files)
    missing = [file for file in files if found[file.path] != file.sha256]
    if not missing:
        return frozenset()
    sent = frozenset(file.path for file in missing)
    sizes = {file.path: _size(file.local) for file in missing}
    spans = {file.path: await _spans(host, file, sizes[file.path]) for file in missing}
    to_send = sum(span.size for each in spans.values() for span in each)
    await _require_far_room(host, missing[0].path, to_send + further_bytes)
    for _ in range(_TRIES):
        for file in await _push_many(host, missing, sizes, progress):
            await _push(host, file, sizes[file.path], spans.pop(file.path, None), progress)
        found = await _far_hashes(host, missing)
        missing = [file for file in missing if found[file.path] != file.sha256]
        if not missing:
            return sent
    file = missing[0]
    arrived = found[file.path]
    raise FalseFile(f"{file.path} arrived with SHA-256 {arrived} instead of {file.sha256}, {_TRIES} times")


async def pull_verified(
    host: Host,
    path: str,
    local: Path,
    wanted: FileHash | None = None,
    *,
    parts: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Download `path` from the job's folder to `local`, flushed to disk; an identical file is not downloaded again.

    `wanted` is the file's hash and size from an inventory; without it the machine reads the file again. What arrived
    before a lost connection stays in `parts`, a folder on the same disk, else beside `local`, and the next call resumes
    there. Raises DiskFull before anything is downloaded or when the disk fills up during the transfer, TransferFailed
    when the file is missing, and FalseFile when its size or, twice, its hash is not what the machine reported.
    """
    wanted = wanted or await _far_file(host, path)
    if _is_there(local) and await asyncio.to_thread(_is_equal, local, wanted):
        return local
    part = (parts or local.parent) / f".{wanted.sha256[:16]}.fetching"
    local.parent.mkdir(parents=True, exist_ok=True)
    try:
        for _ in range(_TRIES):
            await _pull(host, path, part, wanted, progress)
            if await asyncio.to_thread(_has_arrived, part, local, wanted):
                return local
            _remove(part)
    except (TransferFailed, DiskFull):
        _remove(part)
        raise
    raise FalseFile(f"{path} did not arrive with SHA-256 {wanted.sha256}, {_TRIES} times")


async def _spans(host: Host, file: Sending, size: int) -> Sequence[Span]:
    if not _is_resumable(host.remote, size):
        return (Span(0, size),)
    return await spans_to_push(host, file.local, file.path, FileHash(sha256=file.sha256, size=size))


async def _push_many(
    host: Host, files: Sequence[Sending], sizes: Mapping[str, int], progress: Progress | None
) -> Sequence[Sending]:
    """Upload small files together where the remote can; return those to be sent one by one."""
    small = {file.path: file.local for file in files if sizes[file.path] < RESUMABLE_BYTES}
    if len(small) < 2 or not isinstance(host.remote, SupportsMany):
        return files
    try:
        await host.remote.push_many(small, host.root, progress=progress)
    except TransferFailed as problem:
        free = await _far_free_bytes(host)
        if free is not None and free < _FULL_BYTES:
            size = sum(sizes[path] for path in small)
            raise _filled_up(f"the machine, during the upload of {len(small)} files", size, free) from problem
        raise
    return [file for file in files if file.path not in small]


async def _push(host: Host, file: Sending, size: int, spans: Sequence[Span] | None, progress: Progress | None) -> None:
    remote = host.remote
    if not _is_resumable(remote, size):
        await remote.push(file.local, host.path(file.path), progress=progress)
        return
    wanted = FileHash(sha256=file.sha256, size=size)
    chosen = (Span(0, wanted.size),) if spans is None else spans
    try:
        await push_spans(host, remote, file.local, file.path, wanted, chosen, progress)
    except TransferFailed as problem:
        free = await _far_free_bytes(host)
        await forget_push(host, remote, file.path, wanted)
        if free is not None and free < _FULL_BYTES:
            raise _filled_up(f"the machine, during the upload of {file.path}", wanted.size, free) from problem
        raise


async def _pull(host: Host, path: str, part: Path, wanted: FileHash, progress: Progress | None) -> None:
    remote = host.remote
    if not _is_resumable(remote, wanted.size):
        _require_near_room(part, wanted.size)
        await remote.pull(host.path(path), part, size=wanted.size, progress=progress)
        return
    spans = await spans_to_pull(host, path, part, wanted)
    _require_near_room(part, sum(span.size for span in spans))
    try:
        await pull_spans(host, remote, path, part, wanted, spans, progress)
    except TransferFailed as problem:
        free = _near_free_bytes(part)
        if free < _FULL_BYTES:
            raise _filled_up(f"this computer, during the download of {path}", wanted.size, free) from problem
        raise


def _is_resumable(remote: Remote, size: int) -> TypeGuard[SupportsSpans]:
    return size >= RESUMABLE_BYTES and isinstance(remote, SupportsSpans)


async def _far_hashes(host: Host, files: Sequence[Sending]) -> dict[str, str | None]:
    found = await host.hash([file.path for file in files])
    return {file.path: None if (known := found.get(file.path)) is None else known.sha256 for file in files}


async def _far_file(host: Host, path: str) -> FileHash:
    found = (await host.hash([path])).get(path)
    if found is None:
        raise TransferFailed(f"{path} is not on the machine")
    return found


async def _require_far_room(host: Host, path: str, size: int) -> None:
    free = await _far_free_bytes(host)
    if free is not None:
        _require_room(f"the machine, for {path}", size, free)


async def _far_free_bytes(host: Host) -> int | None:
    """Return the free bytes on the job's disk; None where `df` is missing or prints another format: not an error."""
    done = await host.remote.run(["df", "-Pk", host.root], timeout=SMALL_CALL_SECONDS)
    fields = done.stdout.decode(errors="replace").strip().rpartition("\n")[2].split()
    return int(fields[3]) * 1024 if done.exit_status == 0 and len(fields) > 5 and fields[3].isdigit() else None


def _require_near_room(local: Path, size: int) -> None:
    _require_room(f"this computer, for {local.parent}", size, _near_free_bytes(local))


def _near_free_bytes(local: Path) -> int:
    folder = next(parent for parent in local.absolute().parents if parent.exists())
    return shutil.disk_usage(folder).free


def _require_room(where: str, size: int, free: int) -> None:
    if size + ROOM_TO_SPARE_BYTES > free:
        raise DiskFull(
            f"not enough room on {where}: "
            f"{size:,} bytes and {ROOM_TO_SPARE_BYTES:,} to spare are needed, {free:,} are free"
        )


def _filled_up(where: str, size: int, free: int) -> DiskFull:
    return DiskFull(
        f"the disk of {where}, filled up: {size:,} bytes, {free:,} are free; the incomplete file was removed"
    )


def _size(local: Path) -> int:
    try:
        return local.stat().st_size
    except OSError as problem:
        raise TransferFailed(f"{local} cannot be read: {problem.strerror}") from problem


def _is_there(path: Path) -> bool:
    return path.is_file()


def _is_equal(path: Path, wanted: FileHash) -> bool:
    return _is_there(path) and path.stat().st_size == wanted.size and sha256_of(path) == wanted.sha256


def _has_arrived(part: Path, local: Path, wanted: FileHash) -> bool:
    """Give a file that arrived with its hash its name."""
    is_equal = _is_equal(part, wanted)
    if is_equal:
        rename_durably(part, local)
    return is_equal


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
