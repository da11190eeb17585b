"""A door to a machine: a TCP port that passes connections on, and that can be shut, silenced or cut."""

from __future__ import annotations

import asyncio
import contextlib
from enum import Enum, auto

from stationmaster.simulator.listening import stop_listening

_CHUNK_BYTES = 256 * 1024


class ForwardState(Enum):
    OPEN = auto()
    REFUSING = auto()  # nobody listens: connections are refused
    SILENT = auto()  # connections stand, and nothing passes: a cable pulled somewhere


class PortForward:
    """Listens on this computer and passes what comes to `target`; counts the bytes each way."""

    def __init__(self, host: str, target: tuple[str, int] | None = None) -> None:
        self.target = target
        self.port = 0
        self.inward_bytes = 0
        self.outward_bytes = 0
        self._host = host
        self._server: asyncio.Server | None = None
        self._is_shut = False  # a connection accepted just before must not get through
        self._passing: set[asyncio.Task[None]] = set()
        self._audible = asyncio.Event()
        self._audible.set()

    async def open(self, port: int = 0) -> int:
        """Listen, on this port if it can be had, else on any; the port is returned."""
        self._is_shut = False
        try:
            self._server = await asyncio.start_server(self._enter, self._host, port, limit=_CHUNK_BYTES)
        except OSError:
            self._server = await asyncio.start_server(self._enter, self._host, 0, limit=_CHUNK_BYTES)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def set(self, state: ForwardState) -> None:
        """Change how the door behaves, for connections that stand and for new ones."""
        if state is ForwardState.SILENT:
            self._audible.clear()
            return
        self._audible.set()
        if state is ForwardState.REFUSING:
            await self.close()
        elif self._server is None:
            await self.open(self.port)

    async def close(self) -> None:
        """Nobody listens and every connection is cut."""
        self._is_shut = True
        server, self._server = self._server, None
        if server is not None:
            await stop_listening(server)
        passing = list(self._passing)
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        try:
            await self._audible.wait()
            if self.target is None or self._is_shut:
                return
            far_reader, far_writer = await asyncio.open_connection(*self.target, limit=_CHUNK_BYTES)
            try:
                await self._pass(reader, writer, far_reader, far_writer)
                # Both sides have said their last; what is still on its way must arrive before the door closes.
                for ended in (writer, far_writer):
                    ended.close()
                    await ended.wait_closed()
            finally:
                far_writer.transport.abort()
        except* (OSError, asyncio.CancelledError):
            pass  # the far side is gone or the door was shut: the near side sees its connection end
        finally:
            writer.transport.abort()
            self._passing.discard(task)

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
            await self._audible.wait()
            writer.write(chunk)
            await writer.drain()
            if inward:
                self.inward_bytes += len(chunk)
            else:
                self.outward_bytes += len(chunk)
        with contextlib.suppress(OSError):
            writer.write_eof()
