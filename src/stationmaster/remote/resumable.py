"""Files that broke off on their way: the two sides compare pieces by their SHA-256, and only what is missing moves.

A partial file is named after the content that it is to have, so whoever writes to it, however late, writes the same
bytes to the same places.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from stationmaster.errors import TransferFailed
from stationmaster.remote.base import Progress, Span, SupportsSpans
from stationmaster.remote.host import FileHash, Host

#: Smaller files are sent again whole: to ask about them would take longer.
RESUMABLE_BYTES = 4 * 2**20

#: After a cut a piece that was not complete is sent again.
CHUNK_BYTES = 2**20


async def spans_to_push(host: Host, local: Path, path: str, wanted: FileHash) -> Sequence[Span]:
    """What the machine still lacks of `local`, of which it may have got a part before."""
    part = _far_part(path, wanted)
    if await host.remote.stat(host.path(part)) is None:  # costs no program's start on the machine
        return _whole(wanted)
    there = await host.chunk_hashes(part, CHUNK_BYTES, end_writers=True)
    return await asyncio.to_thread(_missing, local, wanted.size, there) if there else _whole(wanted)


async def push_spans(
    host: Host,
    remote: SupportsSpans,
    local: Path,
    path: str,
    wanted: FileHash,
    spans: Sequence[Span],
    progress: Progress | None = None,
) -> None:
    """`path` has all bytes; the partial file stays when the connection is lost. Whether they are right is not known."""
    part = host.path(_far_part(path, wanted))
    if spans:
        counted = _counted(progress, wanted, spans)
        await remote.push_spans(local, part, spans, size=wanted.size, progress=counted)
    await remote.rename(part, host.path(path))


async def forget_push(host: Host, remote: SupportsSpans, path: str, wanted: FileHash) -> None:
    """The machine has no partial file any more."""
    await remote.remove(host.path(_far_part(path, wanted)))


async def spans_to_pull(host: Host, path: str, part: Path, wanted: FileHash) -> Sequence[Span]:
    """What `part` still lacks of the file on the machine."""
    if not await asyncio.to_thread(part.exists):
        return _whole(wanted)
    there = await host.chunk_hashes(path, CHUNK_BYTES)
    if len(there) != -(-wanted.size // CHUNK_BYTES):
        raise TransferFailed(f"{path} has changed on the machine since it was asked for")
    return await asyncio.to_thread(_missing, part, wanted.size, there)


async def pull_spans(
    host: Host,
    remote: SupportsSpans,
    path: str,
    part: Path,
    wanted: FileHash,
    spans: Sequence[Span],
    progress: Progress | None = None,
) -> None:
    """`part` has all bytes; what came stays when the connection is lost. Whether they are right is not known."""
    if spans:
        counted = _counted(progress, wanted, spans)
        await remote.pull_spans(host.path(path), part, spans, size=wanted.size, progress=counted)


def spans_between(mine: Sequence[str], theirs: Sequence[str], size: int) -> list[Span]:
    """The parts of a file of `size` bytes in which the hashes of the pieces differ, neighbours joined."""
    spans: list[Span] = []
    for number in range(-(-size // CHUNK_BYTES)):
        if number < min(len(mine), len(theirs)) and mine[number] == theirs[number]:
            continue
        offset = number * CHUNK_BYTES
        length = min(CHUNK_BYTES, size - offset)
        if spans and spans[-1].offset + spans[-1].size == offset:
            spans[-1] = Span(spans[-1].offset, spans[-1].size + length)
        else:
            spans.append(Span(offset, length))
    return spans


def _far_part(path: str, wanted: FileHash) -> str:
    return str(PurePosixPath(path).with_name(f".{wanted.sha256[:16]}.part"))


def _whole(wanted: FileHash) -> Sequence[Span]:
    return (Span(0, wanted.size),)


def _missing(local: Path, size: int, there: Sequence[str]) -> list[Span]:
    try:
        return spans_between(list(_chunk_hashes(local)), there, size)
    except OSError as problem:
        raise TransferFailed(f"{local} cannot be read: {problem.strerror}") from problem


def _chunk_hashes(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            yield hashlib.sha256(piece).hexdigest()


def _counted(progress: Progress | None, wanted: FileHash, spans: Sequence[Span]) -> Progress | None:
    """Progress of the whole file, of which some was there before."""
    if progress is None:
        return None
    before = wanted.size - sum(span.size for span in spans)
    return lambda done, _total: progress(before + done, wanted.size)
