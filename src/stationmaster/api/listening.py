"""The socket of the service, and how many connections it may have."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import suppress
from typing import Any

from stationmaster.api.connections import Connections, Leave
from stationmaster.errors import ConfigInvalid

BACKLOG = 512
_AT_ONCE = 100  # connections that are accepted before the event loop has closed those that made room
_SPARE_FILES = 200 + _AT_ONCE  # for the store, files and requests to providers


class Accepted(socket.socket):
    """A connection that gives back its place when it is closed."""

    leave: Leave | None = None

    def close(self) -> None:
        leave, self.leave = self.leave, None
        if leave is not None:
            leave()
        super().close()


class Listener(socket.socket):
    """A listening socket that accepts what `connections` has a place for, once they are set."""

    connections: Connections | None = None
    refusal: bytes = b""  # what a connection without a place is answered; nothing where TLS comes first
    _accepted = 0

    @classmethod
    def of(cls, listening: socket.socket) -> Listener:
        return cls(listening.family, listening.type, listening.proto, fileno=listening.detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises BlockingIOError when there is nothing to accept now."""
        if self.connections is None:
            return super().accept()
        while self._accepted < _AT_ONCE:
            plain, address = super().accept()
            if not self._accepted:
                asyncio.get_running_loop().call_soon(self._begin_again)
            self._accepted += 1
            connection = Accepted(plain.family, plain.type, plain.proto, fileno=plain.detach())
            connection.leave = self.connections.admit(connection, str(address[0]))
            if connection.leave is not None:
                return connection, address
            self._refuse(connection)
        raise BlockingIOError("the event loop comes back")

    def _begin_again(self) -> None:
        self._accepted = 0

    def _refuse(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setblocking(False)
            connection.send(self.refusal)


def listen(host: str, port: int) -> Listener:
    """Raises ConfigInvalid for a port in use and an address that is not ours."""
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as problem:
        raise ConfigInvalid(
            f"port {port} on {host} cannot be used: {problem.strerror}",
            hint="choose another one with --port, or with the setting serve.port",
        ) from None
    # Connections inherit it. asyncio sets it only for sockets that name TCP; without it an answer waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Listener.of(listening)


def address_of(listening: socket.socket, *, is_https: bool) -> str:
    """The URL at which this computer reaches the service."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{'https' if is_https else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def possible_connections(wanted: int) -> int:
    """How many connections this process may hold; its limit on open files is raised for them where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(10, min(wanted, soft - _SPARE_FILES))
