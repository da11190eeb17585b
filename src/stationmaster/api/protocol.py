"""HTTP connections that cannot be held open for nothing.

uvicorn waits for ever for the rest of a request's head. A few thousand clients that send a byte now and then would keep
everybody else out.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from stationmaster.api.connections import ConnectionLimits, Connections
from stationmaster.api.gate.headers import EVERYWHERE
from stationmaster.errors import StationmasterError, UserError
from stationmaster.station.wire.problem import MEDIA_TYPE, Problem


class Malformed(UserError):
    """This is not a valid HTTP request."""


class ServerFull(StationmasterError):
    """The server has too many open connections."""

    http_status = 503


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with limits on how long a client may keep a connection without using it."""

    limits = ConnectionLimits()
    open_connections = Connections(ConnectionLimits())

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._since = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    @property
    def waits_since(self) -> float | None:
        """When the server began to wait for this client: for a request, the rest of its body, or for it to read."""
        is_waiting = self.conn.their_state is not h11.DONE or self._unread_timer is not None
        return self._since if is_waiting else None

    @property
    def has_half_request(self) -> bool:
        """Whether the rest of a body is still to come."""
        return self.conn.their_state is h11.SEND_BODY

    def give_up(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # For a live stream, which cuts off a client that does not read.
        self.app_state = {**self.app_state, "transport": transport}
        self.open_connections.meet(transport.get_extra_info("socket").fileno(), self)
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self.give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is h11.IDLE or (is_answered and self.conn.their_state is h11.SEND_BODY):
            self._head_timer = self._head_timer or self.loop.call_later(self.limits.head_seconds, self.give_up)
        elif self._head_timer is not None:
            self._stop_waiting()
            self._since = self.loop.time()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_unread_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_unread_timer()
        self._unread_timer = self.loop.call_later(self.limits.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._stop_unread_timer()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """As problem JSON, like every error."""
        self._refuse(Malformed())

    def _refuse(self, error: StationmasterError) -> None:
        self._stop_waiting()
        if self.cycle is None or self.cycle.response_complete:  # else an answer is under way; it can only be closed
            self.transport.write(refusal_of(error))
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_unread_timer(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


def guarded_by(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """The protocol with these limits, for uvicorn, which makes one per connection."""
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits, "open_connections": Connections(limits)})


def refusal_of(error: StationmasterError) -> bytes:
    """A whole HTTP answer with the problem, after which the connection is closed."""
    body = Problem.of(error).model_dump_json().encode()
    headers = {
        **EVERYWHERE,
        "Content-Type": MEDIA_TYPE,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    lines = [f"HTTP/1.1 {error.http_status} Refused", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body
