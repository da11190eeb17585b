"""Fans news out to all who listen: each batch is encoded once, and every client gets the same bytes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from stationmaster.api.live.frames import Encoder, Frames
from stationmaster.api.live.listener import Closing, Listener
from stationmaster.errors import NotSignedIn, StationmasterError, TooManyRequests
from stationmaster.event_log import get_logger
from stationmaster.model import Caller
from stationmaster.station.news import Batch, News, Position, Topic

log = get_logger("stationmaster.serve")

_THREADS = 8  # of their own: a slow store must not take the threads of other requests
_RETRY_SECONDS = 10.0

Answer = TypeVar("Answer")
CallerAgain = Callable[[], Caller]
"""Who the client is now; raises NotSignedIn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLimits:
    streams: int = 1000
    streams_per_user: int = 50
    heartbeat_seconds: float = 15.0
    retry_seconds: float = 2.0  # when a client that was cut off comes back
    check_seconds: float = 30.0  # between checks whether a client may still listen
    most_bytes: int = 1 << 20  # that may wait for one client
    most_frames: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seat:
    user: str | None  # None: an administrator


@dataclass(slots=True, eq=False)
class Channel:
    """A topic that is followed for its listeners."""

    opened: asyncio.Task[int]
    delivered: Position | None = None
    is_over: bool = False
    listeners: dict[Listener, _Seat | None] = field(default_factory=dict)  # None: has not joined yet

    @property
    def position(self) -> Position:
        """What was handed over so far. A reader of the store can be ahead of it."""
        assert self.delivered is not None, "following a topic delivers its position first"
        return self.delivered

    def join(self, listener: Listener) -> Position:
        """From now on the listener gets everything that is new; returns what was handed over before."""
        self.listeners[listener] = _Seat(user=None if listener.caller.sees_all else listener.caller.user)
        if self.is_over:
            listener.finish()
        return self.position


class Hub:
    """One per process. Everything but `_deliver` runs in the event loop; it rests while there are no listeners."""

    def __init__(self, news: News, limits: LiveLimits | None = None) -> None:
        self.limits = limits or LiveLimits()
        self._news = news
        self._encoder = Encoder()
        self._channels: dict[Topic, Channel] = {}
        self._listeners: dict[Listener, CallerAgain | None] = {}
        self._count: Counter[str] = Counter()
        self._ticking: list[asyncio.Task[None]] = []
        self._threads: anyio.CapacityLimiter | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def is_listened_to(self) -> bool:
        return bool(self._listeners)

    @contextmanager
    def listener(self, caller: Caller, again: CallerAgain | None) -> Iterator[Listener]:
        """A place for one stream. Raises TooManyRequests."""
        hint = "close streams that are not needed; GET without Accept: text/event-stream answers in pages"
        if len(self._listeners) >= self.limits.streams or self._is_closed:
            problem = "the server has no room for more live streams"
            raise TooManyRequests(problem, retry_after_seconds=_RETRY_SECONDS, hint=hint)
        if self._count[caller.user] >= self.limits.streams_per_user:
            problem = f"{caller.user} has {self._count[caller.user]} live streams already"
            raise TooManyRequests(problem, retry_after_seconds=_RETRY_SECONDS, hint=hint)
        listener = Listener(caller, most_bytes=self.limits.most_bytes, most_frames=self.limits.most_frames)
        self._listeners[listener] = again
        self._count[caller.user] += 1
        if not self._ticking:
            self._ticking = [asyncio.create_task(self._beat()), asyncio.create_task(self._check_callers())]
        try:
            yield listener
        finally:
            del self._listeners[listener]
            self._count[caller.user] -= 1
            if not self._count[caller.user]:
                del self._count[caller.user]
            if not self._listeners:
                for task in self._ticking:
                    task.cancel()
                self._ticking = []

    async def ask(self, function: Callable[..., Answer], *args: Any) -> Answer:
        """The answer of a function that waits for the store."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(_THREADS)
        return await anyio.to_thread.run_sync(function, *args, limiter=self._threads)

    def close(self) -> None:
        """End all streams at once: the server stops."""
        self._is_closed = True
        for listener in self._listeners:
            listener.close(Closing.SERVER_STOPS)

    @asynccontextmanager
    async def followed(self, listener: Listener, topic: Topic) -> AsyncIterator[Channel]:
        """The topic's channel, which the listener joins when it has its history. Raises StoreError."""
        channel = self._channel(topic)
        channel.listeners[listener] = None  # before it waits: while there are listeners the channel stays
        try:
            await asyncio.shield(channel.opened)
            yield channel
        finally:
            del channel.listeners[listener]
            if not channel.listeners:
                self._close(topic, channel)

    def _channel(self, topic: Topic) -> Channel:
        channel = self._channels.get(topic)
        if channel is None:
            deliver = partial(self._deliver, asyncio.get_running_loop())
            opened = asyncio.create_task(self.ask(self._news.follow, topic, deliver))
            channel = self._channels[topic] = Channel(opened=opened)
        return channel

    def _close(self, topic: Topic, channel: Channel) -> None:
        """Follow the topic no longer, since it has no listeners."""
        if self._channels.get(topic) is channel:
            del self._channels[topic]
        leaving = asyncio.create_task(self._unfollow(topic, channel))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _unfollow(self, topic: Topic, channel: Channel) -> None:
        try:
            await self.ask(self._news.unfollow, topic, await channel.opened)
        except StationmasterError as problem:
            log.debug("topic.not_followed", topic=topic.kind.value, job=topic.job_id, problem=str(problem))

    def _deliver(self, loop: asyncio.AbstractEventLoop, batch: Batch) -> None:
        """Called by the news, from a thread of theirs."""
        if not batch.items and not batch.is_over:
            self._encoder.forget(batch.topic)  # it begins
        frames = self._encoder.encode(batch)
        try:
            loop.call_soon_threadsafe(self._fan_out, batch, frames)
        except RuntimeError:
            log.debug("news.too_late", why="the server has stopped")

    def _fan_out(self, batch: Batch, frames: Frames) -> None:
        channel = self._channels.get(batch.topic)
        if channel is None:
            return
        if channel.delivered is None and batch.items:
            return  # for those who listened before
        channel.delivered = batch.position
        channel.is_over = batch.is_over
        for listener, seat in channel.listeners.items():
            if seat is not None:
                listener.put(frames.seen_by(seat.user))
                if batch.is_over:
                    listener.finish()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.limits.heartbeat_seconds)
            for listener in list(self._listeners):
                listener.beat()

    async def _check_callers(self) -> None:
        """End the streams of those who may no longer listen: a token was revoked, a user removed, a role changed."""
        while True:
            await asyncio.sleep(self.limits.check_seconds)
            answers: dict[object, Caller | None] = {}
            for listener, again in list(self._listeners.items()):
                if again is None:
                    continue
                key = _key(again)
                if key not in answers:
                    try:
                        answers[key] = await self.ask(again)
                    except NotSignedIn:
                        answers[key] = None
                    except StationmasterError as problem:
                        log.warning("caller.unchecked", problem=str(problem))  # unknown is not no
                        continue
                if answers[key] != listener.caller:
                    listener.close(Closing.SIGNED_OUT)


def _key(again: CallerAgain) -> object:
    """Streams with the same credentials are checked once."""
    return (again.func, again.args) if isinstance(again, partial) else again
