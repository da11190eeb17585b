"""Copy files over one SFTP channel, many blocks or files at a time; a cancel takes effect at once.

asyncssh's own put and get wait for the server to close the file even when they are cancelled, which on a half-open
connection never happens.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

import asyncssh

from stationmaster.errors import FalseFile, TransferFailed
from stationmaster.remote.base import Progress, Span

_FALLBACK_BLOCK_BYTES = 1 << 15
_BIGGEST_BLOCK_BYTES = 1 << 18
_IN_FLIGHT_BYTES = 1 << 22
_FILES_AT_ONCE = 16
_IN_PLACE = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT  # existing bytes stay

_CopyBlock = Callable[[int, int], Awaitable[None]]


async def send_file(
    sftp: asyncssh.SFTPClient, local: Path, remote: str, moved: Progress, spans: Sequence[Span] | None = None
) -> None:
    """Copy `local` to `remote`, or only `spans` of it. Raises TransferFailed if either disk refuses."""
    failure = f"{local} could not be sent to {remote}"
    with _open(local, "rb", failure) as here, refused_by_far_disk(failure):
        there = await sftp.open(remote, "wb" if spans is None else _IN_PLACE, encoding=None, block_size=0)

        async def copy_block(offset: int, size: int) -> None:
            with refused_by_near_disk(failure):
                data = await asyncio.to_thread(os.pread, here.fileno(), size, offset)
            if len(data) != size:
                raise TransferFailed(f"{failure}: it became shorter during the transfer")
            await there.write(data, offset)

        wanted = _whole(os.fstat(here.fileno()).st_size) if spans is None else spans
        await _copy(wanted, _block_bytes(sftp.limits.max_write_len), copy_block, moved)
        await there.close()


async def fetch_file(
    sftp: asyncssh.SFTPClient,
    remote: str,
    local: Path,
    moved: Progress,
    spans: Sequence[Span] | None = None,
    *,
    size: int,
) -> None:
    """Copy `remote`, which has `size` bytes, to `local`, or only `spans` of it.

    Raises TransferFailed if either disk refuses, and FalseFile if the machine's file has another size or a block comes
    with more bytes than were asked for.
    """
    failure = f"{remote} could not be fetched to {local}"
    with _open(local, _mode(local, spans), failure) as here, refused_by_far_disk(failure):
        there = await sftp.open(remote, "rb", block_size=0)

        async def copy_block(offset: int, count: int) -> None:
            while count > 0:
                data = cast(bytes, await there.read(count, offset))
                if not data:
                    raise TransferFailed(f"{failure}: it became shorter during the transfer")
                if len(data) > count:
                    raise FalseFile(f"{failure}: more bytes came than were asked for")
                with refused_by_near_disk(failure):
                    await asyncio.to_thread(os.pwrite, here.fileno(), data, offset)
                offset, count = offset + len(data), count - len(data)

        if spans is None and (there_size := (await there.stat()).size or 0) != size:
            raise FalseFile(f"{failure}: it has {there_size:,} bytes, and {size:,} were reported")
        wanted = _whole(size) if spans is None else spans
        await _copy(wanted, _block_bytes(sftp.limits.max_read_len), copy_block, moved)
        await there.close()


async def send_whole(sftp: asyncssh.SFTPClient, local: Path, target: PurePosixPath, part: str, moved: Progress) -> None:
    """Copy `local` to `target`, which appears whole: until then it is a file beside it with the name `part`."""
    there = str(target.with_name(part))
    try:
        await send_file(sftp, local, there, moved)
        with refused_by_far_disk(f"{target} cannot be replaced"):
            await sftp.posix_rename(there, str(target))
    except TransferFailed:
        with suppress(asyncssh.SFTPError):
            await sftp.remove(there)
        raise


async def send_files(
    sftp: asyncssh.SFTPClient, files: Mapping[str, Path], folder: str, part: str, moved: Progress
) -> None:
    """Upload files below `folder`, many at a time; each appears whole. `part` must be unique."""
    total, done = sum(_stat_size(local) for local in files.values()), 0
    parents = iter(sorted({PurePosixPath(folder, path).parent for path in files}))
    waiting = iter(enumerate(files.items()))

    async def make_parents() -> None:
        for parent in parents:
            with refused_by_far_disk(f"{parent} cannot be made"):
                await make_folder(sftp, parent)

    async def work() -> None:
        for number, (path, local) in waiting:
            await send_whole(sftp, local, PurePosixPath(folder, path), f"{part}{number}", of_one())

    def of_one() -> Progress:
        before = 0

        def moved_of_one(now: int, _size: int) -> None:
            nonlocal before, done
            before, done = now, done + now - before
            moved(done, total)

        return moved_of_one

    await _run_workers(make_parents, _FILES_AT_ONCE)
    await _run_workers(work, _FILES_AT_ONCE)


async def make_folder(sftp: asyncssh.SFTPClient, folder: PurePosixPath) -> None:
    """Make a folder of the machine unless it exists, and the missing ones above it. Raises SFTPError.

    asyncssh's own `makedirs` tries every level from the root, two round trips each; most of them exist.
    """
    if await sftp.isdir(folder):
        return
    if folder.parent != folder:
        await make_folder(sftp, folder.parent)
    try:
        await sftp.mkdir(folder)
    except asyncssh.SFTPError:
        if await sftp.isdir(folder):
            return  # another call has made it meanwhile
        if await sftp.exists(folder):
            raise asyncssh.SFTPFailure(f"{folder} is not a directory") from None
        raise


@contextmanager
def refused_by_far_disk(failure: str) -> Iterator[None]:
    """Turn what the machine's file system refuses into TransferFailed; pass a lost connection on."""
    try:
        yield
    except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection):
        raise
    except asyncssh.SFTPError as problem:
        raise TransferFailed(f"{failure}: {problem.reason}") from problem


@contextmanager
def refused_by_near_disk(failure: str) -> Iterator[None]:
    """Turn what this computer's file system refuses into TransferFailed."""
    try:
        yield
    except OSError as problem:
        raise TransferFailed(f"{failure}: {problem.strerror or problem}") from problem


def _stat_size(local: Path) -> int:
    with refused_by_near_disk(f"{local} cannot be read"):
        return local.stat().st_size


def _whole(size: int) -> Sequence[Span]:
    return (Span(0, size),)


def _mode(local: Path, spans: Sequence[Span] | None) -> str:
    return "rb+" if spans is not None and local.exists() else "wb"


async def _copy(spans: Sequence[Span], block: int, copy_block: _CopyBlock, moved: Progress) -> None:
    """Copy every block once, some at a time; the first failure, or a cancel, stops all."""
    blocks = _blocks(spans, block)
    total = sum(span.size for span in spans)
    done = 0

    async def work() -> None:
        nonlocal done
        for offset, size in blocks:
            await copy_block(offset, size)
            done += size
            moved(done, total)

    count = sum(-(-span.size // block) for span in spans)
    await _run_workers(work, min(count, max(1, _IN_FLIGHT_BYTES // block)))
    if total == 0:
        moved(0, 0)


async def _run_workers(work: Callable[[], Coroutine[None, None, None]], count: int) -> None:
    workers = [asyncio.create_task(work()) for _ in range(count)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


def _blocks(spans: Sequence[Span], block: int) -> Iterator[tuple[int, int]]:
    for span in spans:
        end = span.offset + span.size
        for offset in range(span.offset, end, block):
            yield offset, min(block, end - offset)


def _block_bytes(limit: int) -> int:
    return min(limit or _FALLBACK_BLOCK_BYTES, _BIGGEST_BLOCK_BYTES)


@contextmanager
def _open(path: Path, mode: str, failure: str) -> Iterator[BinaryIO]:
    with refused_by_near_disk(failure):
        file = path.open(mode, buffering=0)
    with file:
        yield file  # type: ignore[misc]  # both modes are binary
