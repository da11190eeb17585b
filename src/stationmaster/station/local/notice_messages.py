"""Sends the monitor's notices as messages: queued in the store first, so that a worker sends what is left over."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from stationmaster.control.messages.messaging import Messaging, open_messaging
from stationmaster.control.monitoring.notices import Notice, NoticeKind
from stationmaster.errors import StationmasterError
from stationmaster.notify.templates import PRIORITIES, MessageText
from stationmaster.printable import words_of
from stationmaster.station.local.installation import Installation
from stationmaster.store.leases import MONITOR_OWNER

_RETRY_SECONDS = 5.0
_MOST_WAITING = 200
_MESSAGE_KINDS = {
    NoticeKind.EPOCH: "epoch",
    NoticeKind.EXITED: "machine",
    NoticeKind.HEALTH: "health",
    NoticeKind.RECOVERED: "message",
}


class NoticeMessages:
    """`put` never waits: a slow service delays messages, not looks."""

    def __init__(self, installation: Installation, messaging: Messaging, *, warn: Callable[[str], None]) -> None:
        self._store = installation.store
        self._messaging = messaging
        self._warn = warn
        self._waiting: asyncio.Queue[Notice] = asyncio.Queue(maxsize=_MOST_WAITING)
        self._owner = f"{MONITOR_OWNER}{socket.gethostname()}-{os.getpid()}"
        self._problem: str | None = None
        self._unstored: list[Notice] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, installation: Installation, *, warn: Callable[[str], None]) -> AsyncIterator[NoticeMessages]:
        messaging = open_messaging(installation.settings, installation.store)
        messages = cls(installation, messaging, warn=warn)
        sending = asyncio.create_task(messages._keep_sending())
        try:
            yield messages
        finally:
            sending.cancel()
            await asyncio.wait({sending})
            try:
                messages._queue([*messages._unstored, *messages._taken()])  # one that is stored already is not repeated
            finally:
                await messaging.close()

    def put(self, notices: Iterable[Notice]) -> None:
        for notice in notices:
            if self._waiting.full() or len(self._unstored) >= _MOST_WAITING:
                self._warn(f"too many notices at once; not sent: {notice.sentence}")
            else:
                self._waiting.put_nowait(notice)

    async def _keep_sending(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_SECONDS):
                    self._unstored.append(await self._waiting.get())
            self._unstored += self._taken()
            try:
                await asyncio.to_thread(self._queue, list(self._unstored))
                self._unstored.clear()
                await self._messaging.notifier.send_due(self._owner)
                self._problem = None
            except StationmasterError as problem:
                if str(problem) != self._problem:
                    self._warn(f"notices were not sent: {problem}")
                self._problem = str(problem)

    def _taken(self) -> list[Notice]:
        return [self._waiting.get_nowait() for _ in range(self._waiting.qsize())]

    def _queue(self, notices: Iterable[Notice]) -> None:
        messages = [
            message
            for notice in notices
            for message in self._messaging.composer.for_notice(_cause(notice), _text(notice), at=notice.at)
        ]
        if messages:
            self._store.outbox.add(messages)


def _cause(notice: Notice) -> str:
    """Two programs that watch the same machine send their own messages."""
    return f"monitor:{notice.instance}:{notice.kind}:{notice.at:.3f}"


def _text(notice: Notice) -> MessageText:
    kind = _MESSAGE_KINDS[notice.kind]
    return MessageText(
        kind=kind,
        text=words_of(notice.sentence),
        priority=PRIORITIES[kind],
        more=f"More: stationmaster monitor --instances {notice.instance}",
    )
