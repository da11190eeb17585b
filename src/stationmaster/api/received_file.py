"""A request's body as a file, in a folder that is removed afterwards."""

from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import anyio.to_thread
from fastapi import Request

from stationmaster.errors import StationmasterError, TooLarge, UserError

_BUFFER_BYTES = 1 << 20
_MOST_MEMBERS = 10_000


@asynccontextmanager
async def received_file(request: Request, name: str, *, most_bytes: int) -> AsyncIterator[Path]:
    """The body under this name. Raises TooLarge, and UserError for a name that is not one of a file.

    Nothing of it is held in memory, and no write blocks the event loop.
    """
    if name in ("", ".", "..") or not name.isprintable() or "/" in name or "\\" in name or len(name.encode()) > 200:
        raise UserError(f"{name!r} is not the name of a file", hint="pass the name alone, without folders")
    with tempfile.TemporaryDirectory(prefix="stationmaster-") as folder:
        path = Path(folder) / name
        with await anyio.to_thread.run_sync(path.open, "wb") as file:
            await _receive(request, file, most_bytes)
        yield path


async def _receive(request: Request, file: BinaryIO, most_bytes: int) -> None:
    waiting, total = bytearray(), 0
    async for chunk in request.stream():
        total += len(chunk)
        if total > most_bytes:
            raise TooLarge(f"the file has more than {most_bytes >> 20} MiB", hint="import it on the server itself")
        waiting += chunk
        if len(waiting) >= _BUFFER_BYTES:
            await anyio.to_thread.run_sync(file.write, bytes(waiting))
            waiting.clear()
    await anyio.to_thread.run_sync(file.write, bytes(waiting))


@contextmanager
def unpacked(archive: Path, *, most_bytes: int) -> Iterator[Path]:
    """The plain files of a tar in a folder of its own. Raises UserError for anything that leads out of it."""
    with tempfile.TemporaryDirectory(prefix="stationmaster-") as folder:
        place = Path(folder) / archive.name
        place.mkdir()
        try:
            with tarfile.open(archive, "r:") as packed:
                _unpack(packed, place, most_bytes)
        except (tarfile.TarError, ValueError, EOFError, OSError) as problem:
            why = getattr(problem, "strerror", None) or "it is not an uncompressed tar archive"
            raise UserError(f"{archive.name} cannot be unpacked: {why}") from None
        yield place


def _unpack(packed: tarfile.TarFile, place: Path, most_bytes: int) -> None:
    total = 0
    for count, member in enumerate(packed, start=1):
        total += member.size
        if count > _MOST_MEMBERS or total > most_bytes:
            raise TooLarge("the folder has too many files", hint="import it on the server itself")
        parts = PurePosixPath(member.name).parts
        if not member.isfile() or member.name.startswith("/") or ".." in parts or "\0" in member.name or not parts:
            raise UserError(f"{member.name!r} cannot be unpacked", hint="pack plain files only")
        target = place.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = packed.extractfile(member)
        assert content is not None, "a plain file has content"
        with target.open("xb") as file:  # only files that this loop wrote are there, and no links
            shutil.copyfileobj(content, file)


@contextmanager
def without_folder(folder: Path) -> Iterator[None]:
    """Errors name files as their sender does, not by our folder."""
    try:
        yield
    except StationmasterError as problem:
        problem.args = tuple(str(text).replace(f"{folder}/", "") for text in problem.args)
        raise
