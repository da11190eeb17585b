"""The socket of the service, and how many connections it may have."""

from __future__ import annotations

import resource
import socket

from stationmaster.errors import ConfigInvalid

_BACKLOG = 512
_SPARE_FILES = 200  # for the store, files and requests to providers


def listen(host: str, port: int) -> socket.socket:
    """Raises ConfigInvalid for a port in use and an address that is not ours."""
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=_BACKLOG
        )
    except OSError as problem:
        raise ConfigInvalid(
            f"port {port} on {host} cannot be used: {problem.strerror}",
            hint="choose another one with --port, or with the setting serve.port",
        ) from None
    # Connections inherit it. asyncio sets it only for sockets that name TCP; without it an answer waits 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


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
