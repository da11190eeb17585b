"""Live streams of a server, from the client's side."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import httpx

from stationmaster.errors import StationmasterError
from stationmaster.station.http.connection import Connection

_SILENCE = httpx.Timeout(60.0, connect=10.0)  # the server sends a comment every 15 seconds
_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    kind: str
    data: str


def messages_in(lines: Iterable[str]) -> Iterator[Message]:
    """The messages of a stream of server-sent events.

    >>> [message.data for message in messages_in(["retry: 2000", "", ": comment", "id: 1", "data: {}", "", "data: x"])]
    ['{}']
    """
    kind, data = "message", list[str]()
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield Message(kind=kind, data="\n".join(data))
            kind, data = "message", []
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)


class Stream:
    """One live stream. `close` may be called from another thread and ends the iteration."""

    def __init__(self, connection: Connection, path: str, *, after: int) -> None:
        self._connection = connection
        self._path = path
        self._after = after
        self._socket: Any = None
        self._is_closed = False

    def __iter__(self) -> Iterator[Message]:
        """Messages until the server closes the stream. Raises what the server answers, or ServerError."""
        headers = {"Accept": "text/event-stream"}
        parameters: dict[str, str | int] = {"after": self._after, "exact": "true"}
        client, lost = self._connection.client, self._connection.errors_of_server()
        with lost, client.stream("GET", self._path, params=parameters, headers=headers, timeout=_SILENCE) as answer:
            self._connection.require_success(answer)
            self._socket = answer.extensions["network_stream"].get_extra_info("socket")
            if not self._is_closed:
                yield from messages_in(answer.iter_lines())

    def close(self) -> None:
        self._is_closed = True
        if self._socket is not None:
            with suppress(OSError):  # closed already
                self._socket.shutdown(socket.SHUT_RDWR)


class Waking:
    """Waits for a job's next event; where there is no live stream, only for the time to pass."""

    def __init__(self, connection: Connection, path: str) -> None:
        """`path` of the job's events."""
        self._connection = connection
        self._path = path
        self._after = 0
        self._news = threading.Event()
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._thread = threading.Thread(target=self._listen, name="waking", daemon=True)

    def __enter__(self) -> Waking:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        if (stream := self._stream) is not None:
            stream.close()

    def wait(self, seconds: float, *, after: int) -> None:
        """Until there is an event later than this version of the job, or the time has passed."""
        self._after = after
        if self._thread.ident is None:
            self._thread.start()  # only for who waits: most look at a job once
        self._news.wait(seconds)
        self._news.clear()

    def _listen(self) -> None:
        while not self._stopping.is_set():
            self._stream = Stream(self._connection, self._path, after=self._after)
            if self._stopping.is_set():
                return
            with suppress(StationmasterError, RuntimeError):  # RuntimeError: the client was closed
                for message in self._stream:
                    if self._stopping.is_set():
                        return
                    self._news.set()
                    if message.kind == "end":
                        return
            self._stopping.wait(_RETRY_SECONDS)
