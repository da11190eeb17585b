"""A TCP port that forwards connections to a machine, and can refuse, stall or drop them."""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum, auto

from stationmaster.simulator.listening import stop_listening

_CHUNK_BYTES = 256 * 1024


class ForwardState(Enum):
    OPEN = auto()
    REFUSING = auto()  # not listening: connections are refused
    SILENT = auto()  # connections stay open, but no data passes, as with a pulled cable


class PortForward:
    """Listens on this computer, forwards connections to `target`, and counts the bytes each way."""

    def __init__(self, host: str, target: tuple[str, int] | None = None) -> None:
        self.target = target
        self.port = 0
        self.inward_bytes = 0
        self.outward_bytes = 0
        self._host = host
        self._server: asyncio.Server | None = None
        self._is_closed = False  # a connection that was just accepted must not get through
        self._connections: set[asyncio.Task[None]] = set()
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    async def open(self, port: int = 0) -> int:
        """Listen on this port if it is free, else on any; returns the port."""
        self._is_closed = False
        try:
            self._server = await asyncio.start_server(self._accept, self._host, port, limit=_CHUNK_BYTES)
        except OSError:
            self._server = await asyncio.start_server(self._accept, self._host, 0, limit=_CHUNK_BYTES)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def set(self, state: ForwardState) -> None:
        """Change the behaviour for open and new connections."""
        if state is ForwardState.SILENT:
            self._may_pass.clear()
            return
        self._may_pass.set()
        if state is ForwardState.REFUSING:
            await self.close()
        elif self._server is None:
            await self.open(self.port)

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        self._is_closed = True
        server, self._server = self._server, None
        if server is not None:
            await stop_listening(server)
        passing = list(self._connections)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._may_pass.wait()
            if self.target is None or self._is_closed:
                return
            far_reader, far_writer = await asyncio.open_connection(*self.target, limit=_CHUNK_BYTES)
            try:
                await self._pass(reader, writer, far_reader, far_writer)
                # Both sides are done; data still on its way must arrive before closing.
                for ended in (writer, far_writer):
                    ended.close()
                    await ended.wait_closed()
            finally:
                far_writer.transport.abort()
        except* (OSError, asyncio.CancelledError):
            pass  # the far side is gone or the port was closed: the near side sees its connection end
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        far_reader: asyncio.StreamReader,
        far_writer: asyncio.StreamWriter,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._copy(reader, far_writer, inward=True))
            group.create_task(self._copy(far_reader, writer, inward=False))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, inward: bool) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            await self._may_pass.wait()
            writer.write(chunk)
            await writer.drain()
            if inward:
                self.inward_bytes += len(chunk)
            else:
                self.outward_bytes += len(chunk)
        with contextlib.suppress(OSError):
            writer.write_eof()
