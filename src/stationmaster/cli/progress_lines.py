"""Lines on standard error that show a person what a command is waiting for. Standard output stays free for data."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stationmaster.cli.terminal_output import overwrite_line, unguarded

if TYPE_CHECKING:
    from stationmaster.station.datasets import (  # imports much that `jobs` does not need
        DatasetReference,
        Progress,
    )

_UNNOTICED_SECONDS = 2.0  # shorter waits need no line
_TICK_SECONDS = 1.0


@contextmanager
def show_download(source: DatasetReference | None) -> Iterator[Progress | None]:
    """A callback that shows the progress of a dataset's download on one line of the terminal.

    None for a local dataset, and where standard error is not a terminal.
    """
    if source is None or isinstance(source, Path) or not sys.stderr.isatty():
        yield None
        return
    try:
        yield lambda done, total: overwrite_line(download_line(str(source), done, total))
    finally:
        overwrite_line("")


@contextmanager
def show_transfer(source: DatasetReference | None, *, uploads: bool) -> Iterator[Progress | None]:
    """As `show_download`; with `uploads` the progress is that of a local dataset's upload to a server."""
    if not (uploads and isinstance(source, Path)) or not sys.stderr.isatty():
        with show_download(source) as progress:
            yield progress
        return
    try:
        yield lambda done, total: overwrite_line(upload_line(source.name, done, total))
    finally:
        overwrite_line("")


def upload_line(name: str, done: int, total: int) -> str:
    """
    >>> upload_line("cats", 1_500_000, 12_000_000)
    'uploading cats: 1.5 of 12.0 MB'
    """
    return f"uploading {name}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"


def download_line(source: str, done: int, total: int) -> str:
    """
    >>> download_line("s3://pictures/cats", 1_500_000, 12_000_000)
    'downloading s3://pictures/cats: 1.5 of 12.0 MB'
    """
    return f"downloading {source}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleWait:
    """Waits for a rate limit: on a terminal with a line that counts down and is then erased, elsewhere with one plain
    line per wait.
    """

    stream: TextIO  # not guarded: it is drawn on
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, seconds: float) -> None:
        if seconds < _UNNOTICED_SECONDS:
            await self.sleep(seconds)
        elif self.stream.isatty():
            await self._count_down(seconds)
        else:
            self._write(f"{waiting_line(seconds)}\n")
            await self.sleep(seconds)

    async def _count_down(self, seconds: float) -> None:
        left = seconds
        try:
            while left > 0:
                self._write(f"\r{waiting_line(left)}\x1b[K")
                await self.sleep(min(left, _TICK_SECONDS))
                left -= _TICK_SECONDS
        finally:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


async def wait_visibly(seconds: float) -> None:
    await VisibleWait(stream=unguarded(sys.stderr))(seconds)


def waiting_line(seconds: float) -> str:
    """
    >>> waiting_line(11.4)
    'waiting 12 s for the rate limit of Vast.ai'
    """
    return f"waiting {math.ceil(seconds)} s for the rate limit of Vast.ai"
