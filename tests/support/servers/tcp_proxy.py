"""A TCP proxy on the loopback that can pause, cut, go silent and slow down, for one event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_CHUNK_BYTES = 1 << 14


class TcpProxy:
    """Forwards bytes to `target_port` until a fault is set."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self.connections = 0
        self.bytes_passed = 0
        #: How often the client sent something after an answer: each costs a round trip on a real line.
        self.round_trips = 0
        self._answered = True
        self.bytes_per_second: float | None = None
        #: Cut every connection once so many bytes have passed in all.
        self.cut_after_bytes: int | None = None
        #: Go silent, as `pause`, once so many bytes have passed in all.
        self.pause_after_bytes: int | None = None
        #: Leave every connection half open, as `forsake`, once so many bytes have passed in all.
        self.forsake_after_bytes: int | None = None
        #: Reset every connection, as `reset`, once so many bytes have passed in all.
        self.reset_after_bytes: int | None = None
        self._forsaken: set[asyncio.Task[None] | None] = set()
        self._over = asyncio.Event()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[None] | None] = set()

    def pause(self) -> None:
        """Half-open: connections stay up and nothing passes, as when the far host has lost power."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        for writer in self._writers:
            writer.transport.abort()

    def reset(self) -> None:
        """As `cut`, with a reset for a farewell instead of an orderly end."""
        for writer in self._writers:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.cut()

    def forsake(self) -> None:
        """From now on nothing passes on today's connections, and neither side ever hears that the other has left."""
        self._forsaken |= self._handlers
        self._writers.clear()

    async def finished(self) -> None:
        """Everything has been cut and every connection's handler has ended."""
        self._over.set()
        self.resume()
        self.cut()
        await asyncio.gather(*(task for task in self._handlers if task is not None), return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._handlers.add(asyncio.current_task())
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        self._writers |= {writer, far_writer}
        handler = asyncio.current_task()
        tasks: set[asyncio.Task[None]] = {
            asyncio.create_task(self._pass(reader, far_writer, handler, is_answer=False)),
            asyncio.create_task(self._pass(far_reader, writer, handler, is_answer=True)),
        }
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait({*tasks, over}, return_when=asyncio.FIRST_COMPLETED)
            if handler in self._forsaken:
                await over
        finally:
            for task in (*tasks, over):
                task.cancel()
            for end in (writer, far_writer):
                end.transport.abort()
            self._writers -= {writer, far_writer}

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: asyncio.Task[None] | None,
        *,
        is_answer: bool,
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._flowing.wait()
                self.bytes_passed += len(data)
                self.round_trips += not is_answer and self._answered
                self._answered = is_answer
                if self.forsake_after_bytes is not None and self.bytes_passed >= self.forsake_after_bytes:
                    self.forsake_after_bytes = None
                    self.forsake()
                if handler in self._forsaken:
                    return
                if self.reset_after_bytes is not None and self.bytes_passed >= self.reset_after_bytes:
                    self.reset_after_bytes = None
                    self.reset()
                    return
                if self.pause_after_bytes is not None and self.bytes_passed >= self.pause_after_bytes:
                    self.pause_after_bytes = None
                    self.pause()
                    await self._flowing.wait()
                if self.cut_after_bytes is not None and self.bytes_passed >= self.cut_after_bytes:
                    self.cut_after_bytes = None
                    self.cut()
                    return
                if self.bytes_per_second is not None:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                if writer.is_closing():
                    return
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def tcp_proxy(target_port: int) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy(target_port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.finished()
        await server.wait_closed()
