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

from stationmaster.cli.terminal_output import unguarded

if TYPE_CHECKING:
    from stationmaster.station.datasets import (  # imports much that `jobs` does not need
        DatasetReference,
        Progress,
    )

_UNNOTICED_SECONDS = 2.0  # shorter waits need no line
_TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Callbacks for the long parts of work on a dataset; None for a part that is not shown."""

    progress: Progress | None = None  # of its download, or of its upload to a server
    packing: Progress | None = None


@contextmanager
def show_dataset(source: DatasetReference | None, *, uploads: bool = False, hidden: bool = False) -> Iterator[Shown]:
    """Show how far a dataset is downloaded, packed, or with `uploads` sent to a server; one bar after the other."""
    from stationmaster.cli.progress_bars import transfer_bar  # only commands with a dataset draw

    is_here = isinstance(source, Path)
    name = (source.name if isinstance(source, Path) else "") or str(source)
    verb = "uploading" if is_here else "downloading"
    with (
        transfer_bar(f"{verb} {name}", hidden=hidden or source is None or (is_here and not uploads)) as progress,
        transfer_bar(f"packing {name}", hidden=hidden or source is None or (uploads and not is_here)) as packing,
    ):
        yield Shown(progress=progress, packing=packing)


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
