"""Machines from the JSON of `vastai show instances --raw`, in a file or a stream."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from stationmaster.control.monitoring.json_stream import JsonStream
from stationmaster.control.monitoring.sources import Listing, Sightings
from stationmaster.control.monitoring.vast_rows import sighting
from stationmaster.errors import ProviderBusy, ProviderFault, UserError
from stationmaster.providers.vastai.telemetry_rows import parse_telemetry

STANDARD_INPUT = "-"
_FIRST_SECONDS = 9.0
_CHUNK_BYTES = 65536
_MOST_BYTES = 64 * 2**20
_HINT = "write it with `vastai show instances --raw > FILE`"


def open_listing(name: str, *, key_path: str | None) -> Listing:
    """The listing in a file, or in a stream: `-` is standard input. Raises UserError if it cannot be opened."""
    if name == STANDARD_INPUT:
        return StreamListing(lambda: 0, what="standard input", key_path=key_path)
    path = Path(name).expanduser()
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb"):
                return FileListing(path, key_path=key_path)
        return StreamListing(lambda: os.open(path, os.O_RDONLY), what=name, key_path=key_path)
    except OSError as problem:
        raise UserError(f"the listing {name} cannot be read: {problem.strerror}", hint=_HINT) from None


class FileListing:
    """A file that some other program writes again and again; read when it has changed."""

    def __init__(self, path: Path, *, key_path: str | None) -> None:
        self._path = path
        self._key_path = key_path
        self._version: tuple[int, ...] = ()
        self._seen: Sightings | None = None

    async def machines(self) -> Sightings:
        """Raises ProviderFault while the file is missing or half written."""
        try:
            about = self._path.stat()
            version = (about.st_mtime_ns, about.st_size, about.st_ino)
            if self._seen is None or version != self._version:
                self._seen = read_listing(self._read(), at=about.st_mtime, key_path=self._key_path)
                self._version = version
        except OSError as problem:
            raise ProviderFault(f"the listing {self._path} cannot be read: {problem.strerror}") from None
        except ValueError as problem:
            raise ProviderFault(f"the listing {self._path} is not complete JSON: {problem}") from None
        return self._seen

    async def close(self) -> None:
        """Nothing is open."""

    def _read(self) -> Any:
        with self._path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES // 2**20} MiB")
        return json.loads(text)


class StreamListing:
    """One document, or several one after another; the newest one counts. A thread reads, because a terminal, a pipe
    and a file behind a descriptor cannot all be waited for in an event loop."""

    def __init__(
        self,
        open_descriptor: Callable[[], int],
        *,
        what: str,
        key_path: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open_descriptor = open_descriptor
        self._what = what
        self._key_path = key_path
        self._clock = clock
        self._stream = JsonStream(most_characters=_MOST_BYTES)
        self._news = threading.Lock()
        self._seen: Sightings | None = None
        self._problem: str | None = None
        self._has_ended = False
        self._has_news = asyncio.Event()
        self._thread: threading.Thread | None = None

    async def machines(self) -> Sightings:
        """Raises ProviderBusy while nothing has come yet, ProviderFault for what is no JSON."""
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._read, args=(loop,), name="listing", daemon=True)
            self._thread.start()
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._has_news.wait()
        except TimeoutError:
            raise ProviderBusy(f"nothing has come from {self._what} yet") from None
        with self._news:
            if self._seen is None and self._has_ended:
                raise UserError(self._problem or f"{self._what} has no list of instances", hint=_HINT)
            if self._seen is None or self._problem is not None:
                raise ProviderFault(self._problem or f"{self._what} has no list of instances yet")
            return self._seen

    async def close(self) -> None:
        """The thread ends with the process: a read of a pipe cannot be interrupted."""

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """The thread: read to the end."""
        try:
            descriptor = self._open_descriptor()
            while chunk := os.read(descriptor, _CHUNK_BYTES):
                self._take(chunk)
                if self._seen is not None or self._problem is not None:
                    loop.call_soon_threadsafe(self._has_news.set)
        except OSError as problem:
            self._problem = f"{self._what} cannot be read: {problem.strerror}"
        except RuntimeError:
            return  # the loop has ended
        with self._news:
            self._has_ended = True
            if self._seen is not None:
                self._seen = replace(self._seen, last=True)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._has_news.set)

    def _take(self, chunk: bytes) -> None:
        for document in self._stream.feed(chunk):
            try:
                seen = read_listing(document, at=self._clock(), key_path=self._key_path)
            except ValueError as problem:
                self._problem = f"{self._what} has JSON that is no list of instances: {problem}"
                continue
            with self._news:
                self._seen, self._problem = seen, None
        if self._stream.skipped:
            self._problem = f"{self._what} has text that is no JSON: {self._stream.skipped}"
            self._stream.skipped = ""


def read_listing(document: Any, *, at: float, key_path: str | None) -> Sightings:
    """The machines; one that cannot be read is described. Raises ValueError if it is no list of instances."""
    rows = document.get("instances") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise ValueError("expected a list of instances")
    telemetry = parse_telemetry(rows)
    return Sightings(
        machines=tuple(sighting(row, key_path=key_path) for row in telemetry.rows),
        unreadable=telemetry.unreadable,
        at=at,
    )
