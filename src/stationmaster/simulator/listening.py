"""Closing a server that listens, without losing hold of who comes at that moment."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol


class Listening(Protocol):
    """An asyncio.Server, or what stands for one."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...

    def close(self) -> None: ...


async def stop_listening(server: Listening) -> None:
    """Close it. A connection that was accepted but not yet handed on would else stay open and belong to nobody.

    So it is in CPython 3.11: `Server.close()` comes between the two, and handing on fails without a word.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(0)  # what was accepted is handed on now
    server.close()
