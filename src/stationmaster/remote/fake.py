"""A machine in memory whose connection can be made to fail, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from stationmaster.errors import FalseFile, HostKeyRefused, TransferFailed, Unreachable
from stationmaster.model.intake_limits import ANSWER_BYTES, STDERR_BYTES
from stationmaster.remote.base import (
    SMALL_CALL_SECONDS,
    TRANSFER_IDLE_SECONDS,
    Completed,
    FileStat,
    Progress,
    command_name,
    no_answer,
    too_long,
)

_CALLS_REMEMBERED = 1000
_NOT_FOUND = 127


class ConnectionFault(StrEnum):
    """What can go wrong with one call."""

    REFUSED = "refused"  # nothing listens: the command was not executed
    VANISHED = "vanished"  # no answer to the first packet: the command was not executed
    HOST_KEY_CHANGED = "host_key_changed"  # another key than the pinned one: nothing was sent
    CUT_BEFORE = "cut_before"  # connection lost: the command was not executed
    CUT_AFTER = "cut_after"  # connection lost: the command WAS executed, its answer is lost
    HANG = "hang"  # accepted, never answered: waits out the caller's time limit
    CORRUPT = "corrupt"  # a transfer that ends well and has wrong bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command as the machine received it."""

    argv: tuple[str, ...]
    input: bytes | None = None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


Handler = Callable[[Call], Completed | Awaitable[Completed]]
StreamHandler = Callable[[Call], AsyncIterator[bytes]]


@dataclass(slots=True, kw_only=True)
class _PlannedFault:
    fault: ConnectionFault
    times: int | None
    only: str | None


class FakeRemote:
    """A Remote whose files and commands are plain objects; several users may share one."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.mtimes: dict[str, float] = {}
        self.folders: set[str] = set()
        #: Local ports that `forward` leads to, by the machine's port; others lead to the same number.
        self.ports: dict[int, int] = {}
        #: The latest calls, as ("run", *argv), ("push", path) and so on, whether they succeeded or not.
        self.calls: deque[tuple[str, ...]] = deque(maxlen=_CALLS_REMEMBERED)
        self._handlers: dict[str, Handler] = {}
        self._stream_handlers: dict[str, StreamHandler] = {}
        self._faults: list[_PlannedFault] = []

    def on(self, name: str, handler: Handler) -> None:
        """Answer commands whose first word is `name` with `handler`."""
        self._handlers[name] = handler

    def on_stream(self, name: str, handler: StreamHandler) -> None:
        """Answer streamed commands whose first word is `name` with what `handler` yields."""
        self._stream_handlers[name] = handler

    def fail(self, fault: ConnectionFault, *, times: int | None = 1, only: str | None = None) -> None:
        """Make the next `times` calls (None: all, until `heal`) fail this way.

        `only`: just calls with this word in their argv, or of this kind (run, stream, push, pull, stat,
        forward).
        """
        self._faults.append(_PlannedFault(fault=fault, times=times, only=only))

    def heal(self) -> None:
        """Remove all planned faults."""
        self._faults.clear()

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        fault = await self._begin_call("run", *argv, limit=timeout)
        call = Call(argv=tuple(argv), input=input, env=MappingProxyType(dict(env or {})))
        done = self._execute(call)
        if not isinstance(done, Completed):
            try:
                async with asyncio.timeout(timeout):
                    done = await done
            except TimeoutError:
                raise no_answer(command_name(argv), timeout) from None
        if len(done.stdout) > most_bytes:
            raise too_long(argv, most_bytes)
        if len(done.stderr) > STDERR_BYTES:
            done = replace(done, stderr=done.stderr[-STDERR_BYTES:])
        return Completed(exit_status=None) if fault is ConnectionFault.CUT_AFTER else done

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AsyncIterator[FakeStream]:
        fault = await self._begin_call("stream", *argv, limit=timeout_idle or SMALL_CALL_SECONDS)
        call = Call(argv=tuple(argv))
        handler = self._stream_handlers.get(argv[0])
        if handler is not None:
            stream = FakeStream(
                handler(call), Completed(exit_status=0), timeout_idle, cut=fault is ConnectionFault.CUT_AFTER
            )
        else:
            answer = self._execute(call)
            done = answer if isinstance(answer, Completed) else await answer
            stream = FakeStream(_once(done.stdout), done, timeout_idle, cut=fault is ConnectionFault.CUT_AFTER)
        try:
            yield stream
        finally:
            await stream.close()

    async def push(
        self,
        local: Path,
        remote: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        fault = await self._begin_call("push", remote, limit=timeout_idle)
        data = _read(local)
        if self._is_folder(remote):
            raise TransferFailed(f"{remote} is a folder")
        self.files[remote] = _corrupted(data) if fault is ConnectionFault.CORRUPT else data
        _finish_transfer(fault, progress, len(data))

    async def pull(
        self,
        remote: str,
        local: Path,
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        fault = await self._begin_call("pull", remote, limit=timeout_idle)
        if remote not in self.files:
            raise TransferFailed(f"{remote} could not be read: no such file")
        data = self.files[remote]
        if len(data) != size:
            raise FalseFile(f"{remote} has {len(data):,} bytes, and {size:,} were reported")
        if fault is not ConnectionFault.CUT_AFTER:
            _write(local, _corrupted(data) if fault is ConnectionFault.CORRUPT else data)
        _finish_transfer(fault, progress, len(data))

    async def stat(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> FileStat | None:
        if await self._begin_call("stat", path, limit=timeout) is ConnectionFault.CUT_AFTER:
            raise Unreachable("the connection was lost")
        mtime = self.mtimes.get(path, 0.0)
        if path in self.files:
            return FileStat(size=len(self.files[path]), mtime=mtime, is_dir=False)
        return FileStat(size=0, mtime=mtime, is_dir=True) if self._is_folder(path) else None

    @asynccontextmanager
    async def forward(self, port: int, *, timeout: float = SMALL_CALL_SECONDS) -> AsyncIterator[int]:
        if await self._begin_call("forward", str(port), limit=timeout) is ConnectionFault.CUT_AFTER:
            raise Unreachable("the connection was lost")
        yield self.ports.get(port, port)

    async def close(self) -> None:
        """Do nothing: no connection is held, and the machine stays."""

    async def _begin_call(self, kind: str, *words: str, limit: float) -> ConnectionFault | None:
        """Raise the next planned fault; return one that shows only after the command has run."""
        self.calls.append((kind, *words))
        fault = self._next_fault((kind, *words))
        match fault:
            case ConnectionFault.REFUSED:
                raise Unreachable("connection refused")
            case ConnectionFault.VANISHED:
                raise no_answer("the machine", limit)
            case ConnectionFault.HOST_KEY_CHANGED:
                raise HostKeyRefused()
            case ConnectionFault.CUT_BEFORE:
                raise Unreachable("the connection was lost")
            case ConnectionFault.HANG:
                await asyncio.sleep(limit)
                raise no_answer("the machine", limit)
            case _:
                return fault

    def _next_fault(self, words: tuple[str, ...]) -> ConnectionFault | None:
        for planned in self._faults:
            if planned.only is None or planned.only in words:
                if planned.times is not None:
                    planned.times -= 1
                    if planned.times == 0:
                        self._faults.remove(planned)
                return planned.fault
        return None

    def _execute(self, call: Call) -> Completed | Awaitable[Completed]:
        handler = self._handlers.get(call.argv[0])
        if handler is None:
            return Completed(exit_status=_NOT_FOUND, stderr=f"{call.argv[0]}: command not found".encode())
        return handler(call)

    def _is_folder(self, path: str) -> bool:
        prefix = path.rstrip("/") + "/"
        return path in self.folders or any(name.startswith(prefix) for name in self.files)


class FakeStream:
    """Chunks of a handler; with `cut` the connection is lost after the first chunk."""

    def __init__(self, chunks: AsyncIterator[bytes], done: Completed, timeout_idle: float | None, *, cut: bool) -> None:
        self._chunks = chunks
        self._done = done
        self._timeout_idle = timeout_idle
        self._cut = cut
        self._ended = False

    @property
    def exit_status(self) -> int | None:
        return self._done.exit_status if self._ended else None

    @property
    def stderr(self) -> bytes:
        return self._done.stderr if self._ended else b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._next_chunk():
            yield chunk
            if self._cut:
                raise Unreachable("the connection was lost")
        self._ended = True

    async def close(self) -> None:
        if inspect.isasyncgen(self._chunks):
            await self._chunks.aclose()

    async def _next_chunk(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_idle):
                return await anext(self._chunks, b"")
        except TimeoutError:
            raise no_answer("the command", self._timeout_idle or 0.0) from None


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def _read(local: Path) -> bytes:
    try:
        return local.read_bytes()
    except OSError as problem:
        raise TransferFailed(f"{local} could not be read: {problem.strerror}") from problem


def _write(local: Path, data: bytes) -> None:
    try:
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(data)
    except OSError as problem:
        raise TransferFailed(f"{local} could not be written: {problem.strerror}") from problem


def _corrupted(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:] if data else b"?"


def _finish_transfer(fault: ConnectionFault | None, progress: Progress | None, size: int) -> None:
    if fault is ConnectionFault.CUT_AFTER:
        raise Unreachable("the connection was lost")
    if progress is not None:
        progress(size, size)
