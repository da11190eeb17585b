"""Resume interrupted transfers: the two sides compare pieces by their SHA-256, and only missing pieces are sent.

A partial file is named after the content that it will have, so every writer, however late, writes the same bytes to
the same places.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from stationmaster.errors import TransferFailed
from stationmaster.remote.base import Progress, Span, SupportsSpans
from stationmaster.remote.host import FileHash, Host

#: Smaller files are sent again in full: asking about them would take longer.
RESUMABLE_BYTES = 4 * 2**20

#: After an interruption an incomplete piece is sent again.
CHUNK_BYTES = 2**20


async def spans_to_push(host: Host, local: Path, path: str, wanted: FileHash) -> Sequence[Span]:
    """Return the parts of `local` that the machine lacks; an earlier transfer may have sent some."""
    part = _far_part(path, wanted)
    if await host.remote.stat(host.path(part)) is None:  # does not start a program on the machine
        return _whole(wanted)
    there = await host.chunk_hashes(part, CHUNK_BYTES, size=wanted.size, end_writers=True)
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
    """Complete `path` with the missing parts, unverified. The partial file stays when the connection is lost."""
    part = host.path(_far_part(path, wanted))
    if spans:
        counted = _counted(progress, wanted, spans)
        await remote.push_spans(local, part, spans, size=wanted.size, progress=counted)
    await remote.rename(part, host.path(path))


async def forget_push(host: Host, remote: SupportsSpans, path: str, wanted: FileHash) -> None:
    """Remove the machine's partial file."""
    await remote.remove(host.path(_far_part(path, wanted)))


async def spans_to_pull(host: Host, path: str, part: Path, wanted: FileHash) -> Sequence[Span]:
    """Return the parts of the machine's file that `part` lacks."""
    if not await asyncio.to_thread(part.exists):
        return _whole(wanted)
    there = await host.chunk_hashes(path, CHUNK_BYTES, size=wanted.size)
    if len(there) != -(-wanted.size // CHUNK_BYTES):
        raise TransferFailed(f"{path} has changed on the machine since its hash was read")
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
    """Complete `part` with the missing parts, unverified. What arrived stays when the connection is lost."""
    if spans:
        counted = _counted(progress, wanted, spans)
        await remote.pull_spans(host.path(path), part, spans, size=wanted.size, progress=counted)


def spans_between(mine: Sequence[str], theirs: Sequence[str], size: int) -> list[Span]:
    """Return the parts of a file of `size` bytes whose piece hashes differ, adjacent ones joined."""
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
    """Count progress for the whole file, of which some was there before."""
    if progress is None:
        return None
    before = wanted.size - sum(span.size for span in spans)
    return lambda done, _total: progress(before + done, wanted.size)
