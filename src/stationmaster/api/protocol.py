"""HTTP connections that cannot be held open for nothing.

uvicorn waits for ever for the rest of a request's head. A few thousand clients that send a byte now and then would keep
everybody else out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from stationmaster.api.gate.headers import EVERYWHERE
from stationmaster.errors import StationmasterError, UserError
from stationmaster.station.wire.problem import MEDIA_TYPE, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    head_seconds: float = 10.0  # the head of a request must be complete in this time, also the rest of a refused body
    unread_seconds: float = 60.0  # an answer that is not read within this time is dropped
    most_connections: int = 2000


class Malformed(UserError):
    """This is not a valid HTTP request."""


class ServerFull(StationmasterError):
    """The server has too many open connections."""

    http_status = 503


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with limits on how long a client may keep a connection without using it."""

    limits = ConnectionLimits()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # For a live stream, which cuts off a client that does not read.
        self.app_state = {**self.app_state, "transport": transport}
        if len(self.connections) > self.limits.most_connections and not self._close_another():
            self._refuse(ServerFull())
            return
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_answered = self.cycle is not None and self.cycle.response_complete
        if self.conn.their_state is h11.IDLE or (is_answered and self.conn.their_state is h11.SEND_BODY):
            self._head_timer = self._head_timer or self.loop.call_later(self.limits.head_seconds, self._give_up)
        else:
            self._stop_waiting()

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

    def _close_another(self) -> bool:
        """Make room by closing the connection that has waited longest for a request; False if none waits."""
        waiting = [each for each in self.connections if isinstance(each, GuardedProtocol) and each._head_timer]
        if not waiting:
            return False
        min(waiting, key=lambda each: each._head_timer.when() if each._head_timer else 0.0)._give_up()
        return True

    def _give_up(self) -> None:
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def _refuse(self, error: StationmasterError) -> None:
        self._stop_waiting()
        status = error.http_status
        headers = {**EVERYWHERE, "Content-Type": MEDIA_TYPE, "Cache-Control": "no-store", "Connection": "close"}
        answer = h11.Response(
            status_code=status,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            reason=STATUS_PHRASES[status],
        )
        try:
            for event in (answer, h11.Data(data=Problem.of(error).model_dump_json().encode()), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # an answer is under way already; all that can be done is to close
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
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits})
