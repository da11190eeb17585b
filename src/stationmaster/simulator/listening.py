"""Closes a server without leaking a connection that arrives at that moment."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


class Listening(Protocol):
    """An asyncio.Server or an object with the same methods."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...

    def close(self) -> None: ...


async def stop_listening(server: Listening) -> None:
    """Stop accepting, let accepted connections get their transport, then close the server.

    With `Server.close()` alone, CPython 3.11 leaks a connection that was accepted but has no transport yet: the socket
    stays open, and its client hangs.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)  # accepted connections get their transport in this round of the loop
    server.close()
