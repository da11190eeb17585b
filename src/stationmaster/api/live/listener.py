"""One client of a live stream: what waits to be sent to it, bounded."""

from __future__ import annotations

import asyncio
from collections import deque
from enum import StrEnum

from stationmaster.api.live.frames import HEARTBEAT
from stationmaster.model import Caller


class Closing(StrEnum):
    """Why the server ends a stream that is not over."""

    TOO_SLOW = "too_slow"
    SIGNED_OUT = "signed_out"
    SERVER_STOPS = "server_stops"


class Listener:
    """Used in the event loop only."""

    def __init__(self, caller: Caller, *, most_bytes: int, most_frames: int) -> None:
        self.caller = caller
        self.closing: asyncio.Future[Closing] = asyncio.get_running_loop().create_future()
        self.is_over = False
        self._most_bytes = most_bytes
        self._most_frames = most_frames
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._news = asyncio.Event()

    def put(self, frames: bytes) -> None:
        """Queue what is new. A client that does not read fast enough is dropped: it may come back and continue."""
        if not frames or self.closing.done():
            return
        is_full = self._bytes + len(frames) > self._most_bytes or len(self._waiting) >= self._most_frames
        if self._waiting and is_full:
            self.close(Closing.TOO_SLOW)
            return
        self._waiting.append(frames)
        self._bytes += len(frames)
        self._news.set()

    def beat(self) -> None:
        """Queue a heartbeat, unless something is waiting anyway."""
        if not self._waiting:
            self.put(HEARTBEAT)

    def finish(self) -> None:
        """Nothing follows."""
        self.is_over = True
        self._news.set()

    def close(self, why: Closing) -> None:
        if not self.closing.done():
            self.closing.set_result(why)
            self._waiting.clear()
            self._bytes = 0

    async def take(self) -> bytes | None:
        """What is to be sent next, as soon as there is something; None when the stream is over."""
        while not self._waiting:
            if self.is_over:
                return None
            self._news.clear()
            await self._news.wait()
        frames = self._waiting.popleft()
        self._bytes -= len(frames)
        return frames
