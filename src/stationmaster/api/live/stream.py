"""A live stream as an HTTP response: first what the client missed, then what is new, until the job has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stationmaster.api.live.frames import END, HEARTBEAT, opening, place
from stationmaster.api.live.history_so_far import ReadPage
from stationmaster.api.live.hub import CallerAgain, Hub
from stationmaster.api.live.listener import Closing, Listener
from stationmaster.api.problems import problem_response
from stationmaster.errors import NotFound, StoreError, TooManyRequests
from stationmaster.event_log import get_logger
from stationmaster.model import Caller
from stationmaster.station.news import Position, Topic

log = get_logger("stationmaster.serve")

MEDIA_TYPE = "text/event-stream"
_STORE_SECONDS = 1.0  # between questions to a store that does not answer
_FAREWELL_SECONDS = 1.0

Answer = TypeVar("Answer")
Write = Callable[[bytes], Awaitable[None]]


class LiveStream(Response):
    """Streams one topic to one client."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        hub: Hub,
        topic: Topic,
        *,
        caller: Caller,
        again: CallerAgain | None,
        read_page: ReadPage,
        after: int | None,
    ) -> None:
        """`after` None: only what is new."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # the latter is for nginx
        del self.headers["content-length"]
        self._hub = hub
        self._topic = topic
        self._caller = caller
        self._again = again
        self._read_page = read_page
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._hub.listener(self._caller, self._again) as listener:
                await self._serve(listener, scope, receive, send)
        except TooManyRequests as refused:
            await problem_response(refused)(scope, receive, send)

    async def _serve(self, listener: Listener, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(listener, send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            ends: set[asyncio.Future[Any]] = {sending, leaving, listener.closing}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait({sending, leaving})
        if not sending.cancelled() and (problem := sending.exception()) is not None:
            raise problem
        if sending.cancelled() and listener.closing.done():
            await _say_goodbye(listener.closing.result(), scope, send)

    async def _send_all(self, listener: Listener, send: Send) -> None:
        async def write(frames: bytes) -> None:
            if frames:
                await send({"type": "http.response.body", "body": frames, "more_body": True})

        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await write(opening(self._hub.limits.retry_seconds))
        try:
            await self._write_history_and_news(listener, write)
        except NotFound:
            log.debug("stream.over", why="the job was removed")
        await send({"type": "http.response.body", "body": END, "more_body": False})

    async def _write_history_and_news(self, listener: Listener, write: Write) -> None:
        async with AsyncExitStack() as stack:
            channel = await self._retried(
                lambda: stack.enter_async_context(self._hub.followed(listener, self._topic)), write
            )
            after = self._after
            if after is not None and self._topic.job_id is not None:
                # A long history first, so that what is new does not wait for it in the client's queue; only within a
                # job are numbers in the order of time. What the channel has yet to hand over is news, not history.
                after = await self._write_pages(after, channel.position, write)
            start = channel.join(listener)
            if after is None:
                await write(place(start.settled))
            else:
                await self._write_pages(after, start, write)
            while (frames := await listener.take()) is not None:
                await write(frames)

    async def _write_pages(self, after: int, until: Position, write: Write) -> int:
        """Write the history up to this position; return the number of its last item."""
        while True:
            page = await self._retried(partial(self._hub.ask, self._read_page, after, until), write)
            await write(page.frames)
            after = page.last
            if page.is_last:
                return after

    async def _retried(self, ask: Callable[[], Coroutine[Any, Any, Answer]], write: Write) -> Answer:
        """Ask the store until it answers; the client gets heartbeats meanwhile."""
        while True:
            try:
                return await self._with_heartbeats(ask(), write)
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
                await self._with_heartbeats(asyncio.sleep(_STORE_SECONDS), write)

    async def _with_heartbeats(self, work: Coroutine[Any, Any, Answer], write: Write) -> Answer:
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=self._hub.limits.heartbeat_seconds))[0]:
                await write(HEARTBEAT)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _say_goodbye(why: Closing, scope: Scope, send: Send) -> None:
    """End the response early. A client that does not read is cut off: it would never take the end."""
    log.debug("stream.closed", why=why.value)
    if why is not Closing.TOO_SLOW:
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
        except TimeoutError:
            pass  # it does not read either
    transport: asyncio.Transport | None = scope.get("state", {}).get("transport")
    if transport is not None:
        transport.abort()
        await asyncio.sleep(0)  # the server notices that the connection is lost
