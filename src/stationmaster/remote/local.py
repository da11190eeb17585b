"""This computer as a machine: commands are real processes, files are real files below a folder."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import BinaryIO, TypeVar

from stationmaster.errors import CommandFailed, FalseFile, TransferFailed, Unreachable
from stationmaster.model.intake_limits import ANSWER_BYTES
from stationmaster.remote.base import (
    SMALL_CALL_SECONDS,
    TRANSFER_IDLE_SECONDS,
    Completed,
    FileStat,
    Progress,
    command_name,
    no_answer,
    read_answer,
    read_tail,
)

_T = TypeVar("_T")

_CHUNK_BYTES = 1 << 16
_COPY_BYTES = 1 << 22

#: A shell's exit codes for a program that is missing or not executable.
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_NOT_READ = (BrokenPipeError, ConnectionResetError)
_CLOSING: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references to tasks


class LocalRemote:
    """Commands start in `root` with exactly `environment`; everything they start inherits it."""

    def __init__(self, *, root: Path | str, environment: Mapping[str, str]) -> None:
        self._root = Path(root)
        self._environment = dict(environment)

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        """Run one command. At the timeout its whole process group is killed and Unreachable is raised."""
        try:
            process = await self._spawn(argv, env=env, stdin=DEVNULL if input is None else PIPE)
        except OSError as problem:
            return _could_not_start(argv, problem)
        try:
            async with asyncio.timeout(timeout):
                stdout, stderr = await _collect(process, input, argv, most_bytes)
        except TimeoutError:
            raise no_answer(command_name(argv), timeout) from None
        finally:
            await _end_group(process)
        return Completed(exit_status=_exit_status(process), stdout=stdout, stderr=stderr)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AsyncIterator[LocalStream]:
        """Run a command and yield its output as it arrives; leaving the block ends its process group."""
        with tempfile.TemporaryFile() as errors:
            try:
                process = await self._spawn(argv, env=None, stdin=PIPE, stderr=errors)
            except OSError as problem:
                yield LocalStream.failed(_could_not_start(argv, problem))
                return
            try:
                yield LocalStream(process, errors, name=command_name(argv), timeout_idle=timeout_idle)
            finally:
                await _end_group(process)

    async def converse(self, argv: Sequence[str], *, timeout: float) -> LocalConversation:
        """Start a command that is asked repeatedly."""
        try:
            return LocalConversation(await self._spawn(argv, env=None, stdin=PIPE, stderr=DEVNULL))
        except OSError as problem:
            raise CommandFailed(f"{argv[0]}: {problem.strerror}") from problem

    async def push(
        self,
        local: Path,
        remote: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        await _copy(local, self._path(remote), progress, timeout_idle)

    async def pull(
        self,
        remote: str,
        local: Path,
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        await _copy(self._path(remote), local, progress, timeout_idle, size=size)

    async def stat(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> FileStat | None:
        try:
            found = self._path(path).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise Unreachable(f"{path} cannot be read: {problem.strerror}") from problem
        return FileStat(size=found.st_size, mtime=found.st_mtime, is_dir=self._path(path).is_dir())

    @asynccontextmanager
    async def forward(self, port: int, *, timeout: float = SMALL_CALL_SECONDS) -> AsyncIterator[int]:
        """Yield the port itself: it is on this computer already."""
        yield port

    async def close(self) -> None:
        """Nothing is held open between calls."""

    def _path(self, path: str) -> Path:
        return self._root / path

    async def _spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None,
        stdin: int,
        stderr: int | BinaryIO = PIPE,
    ) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=stdin,
            stdout=PIPE,
            stderr=stderr,
            cwd=self._root,
            env={**self._environment, **(env or {})},
            start_new_session=True,  # a timeout must end the command's children too, and never us
        )
        if process.stdin is not None:
            closing = asyncio.create_task(_closed(process.stdin))
            _CLOSING.add(closing)
            closing.add_done_callback(_CLOSING.discard)
        return process


class LocalStream:
    """Output of one local process."""

    def __init__(
        self,
        process: asyncio.subprocess.Process | None,
        errors: BinaryIO | None,
        *,
        name: str = "",
        timeout_idle: float | None = None,
        ended: Completed | None = None,
    ) -> None:
        self._process = process
        self._errors = errors
        self._name = name
        self._timeout_idle = timeout_idle
        self._ended = ended

    @classmethod
    def failed(cls, ended: Completed) -> LocalStream:
        """A stream without output: the command could not be started."""
        return cls(None, None, ended=ended)

    @property
    def exit_status(self) -> int | None:
        return None if self._ended is None else self._ended.exit_status

    @property
    def stderr(self) -> bytes:
        return b"" if self._ended is None else self._ended.stderr

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._process is None or self._process.stdout is None or self._errors is None:
            return
        while chunk := await self._limited(self._process.stdout.read(_CHUNK_BYTES)):
            yield chunk
        await self._limited(self._process.wait())
        self._errors.seek(0)
        self._ended = Completed(exit_status=_exit_status(self._process), stderr=self._errors.read())

    async def _limited(self, awaitable: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._timeout_idle):
                return await awaitable
        except TimeoutError:
            raise no_answer(self._name, self._timeout_idle or 0.0) from None


class LocalConversation:
    """One local process that is asked repeatedly."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def is_open(self) -> bool:
        return self._process.returncode is None

    async def send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        await self._process.stdin.drain()

    async def read(self, n: int = -1, /) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.read(n)

    async def close(self) -> None:
        await _end_group(self._process)

    async def give_up(self) -> None:
        await self.close()


def _could_not_start(argv: Sequence[str], problem: OSError) -> Completed:
    status = _NOT_FOUND if isinstance(problem, FileNotFoundError) else _NOT_EXECUTABLE
    return Completed(exit_status=status, stderr=f"{argv[0]}: {problem.strerror}".encode())


def _exit_status(process: asyncio.subprocess.Process) -> int | None:
    """The exit status as a shell reports it: 128 + N for a process ended by signal N."""
    status = process.returncode
    return 128 - status if status is not None and status < 0 else status


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kill a command that is still running, and read its pipes to their end."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # A grandchild that left the group may hold the pipes open for ever: do not wait for it.
    with suppress(TimeoutError):
        async with asyncio.timeout(5.0):
            await process.communicate()


async def _collect(
    process: asyncio.subprocess.Process, input: bytes | None, argv: Sequence[str], most_bytes: int
) -> tuple[bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    sending = asyncio.create_task(_send(process, input))
    errors = asyncio.create_task(read_tail(process.stderr))
    try:
        stdout = await read_answer(process.stdout, argv, most_bytes)
        stderr = await errors
        await sending
        await process.wait()
    finally:
        sending.cancel()
        errors.cancel()
    return stdout, stderr


async def _send(process: asyncio.subprocess.Process, input: bytes | None) -> None:
    if process.stdin is None:
        return
    with suppress(*_NOT_READ):  # a command need not read its input
        process.stdin.write(input or b"")
        await process.stdin.drain()
    process.stdin.close()


async def _closed(stdin: asyncio.StreamWriter) -> None:
    """Wait until the pipe is closed, and ignore its error. Otherwise asyncio logs the error, at some later time."""
    with suppress(*_NOT_READ):
        await stdin.wait_closed()


async def _copy(
    source: Path, target: Path, progress: Progress | None, timeout_idle: float, *, size: int | None = None
) -> None:
    """Copy a file; one that does not have `size` bytes, if that is known, raises FalseFile."""
    part = target.with_name(f".{os.urandom(8).hex()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            await _copy_bytes(source, part, progress, timeout_idle, size)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except TimeoutError:
        raise no_answer(f"the disk, during the copy of {target.name},", timeout_idle) from None
    except OSError as problem:
        raise TransferFailed(f"{source} could not be copied to {target}: {problem.strerror}") from problem


async def _copy_bytes(
    source: Path, part: Path, progress: Progress | None, timeout_idle: float, size: int | None
) -> None:
    with source.open("rb") as reading, part.open("wb") as writing:
        total = os.fstat(reading.fileno()).st_size
        if size not in (None, total):
            raise FalseFile(f"{source} has {total:,} bytes, and {size:,} were reported")
        copied = 0
        while True:
            async with asyncio.timeout(timeout_idle):
                count = await asyncio.to_thread(_copy_piece, reading, writing)
            if count == 0:
                return
            copied += count
            if size is not None and copied > size:
                raise FalseFile(f"{source} became longer than the {size:,} bytes that were reported")
            if progress is not None:
                progress(copied, total)


def _copy_piece(reading: BinaryIO, writing: BinaryIO) -> int:
    return writing.write(reading.read(_COPY_BYTES))
