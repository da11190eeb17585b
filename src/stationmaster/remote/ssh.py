"""A machine over SSH: one connection for everything, opened when needed and reopened when lost."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath

import asyncssh

from stationmaster.errors import TransferFailed, Unreachable
from stationmaster.model.intake_limits import ANSWER_BYTES
from stationmaster.remote.base import (
    SMALL_CALL_SECONDS,
    TRANSFER_IDLE_SECONDS,
    Completed,
    FileStat,
    Progress,
    Span,
    command_name,
    no_answer,
    read_answer,
    read_tail,
    require_success,
)
from stationmaster.remote.rsync import Rsync, opened_rsync, split_tail, staged
from stationmaster.remote.sftp_copy import (
    fetch_file,
    make_folder,
    refused_by_far_disk,
    refused_by_near_disk,
    send_file,
    send_files,
    send_whole,
)
from stationmaster.remote.ssh_connection import SshTarget, open_channel, open_connection, unreachable_when_lost

_CHUNK_BYTES = 1 << 16
_CLOSE_SECONDS = 2.0
_MOST_CHANNELS = 8  # at once; OpenSSH's default limit is ten


@dataclass(slots=True, kw_only=True)
class _Link:
    """An open connection. A retired one takes no new calls and is closed when its last user leaves."""

    connection: asyncssh.SSHClientConnection
    users: int = 0
    retired: bool = False
    channels: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_CHANNELS))

    def drop_if_unused(self) -> None:
        if self.retired and self.users == 0:
            self.connection.abort()


class SshRemote:
    """A Remote over asyncssh. Commands start in the home folder of the user."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target
        self._link: _Link | None = None
        self._opening = asyncio.Lock()
        # The next try overwrites our own partial files, and never those of another process.
        self._part_token = os.urandom(6).hex()
        self._rsync_answers: bool | None = None

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        command = _command_line(argv, {**dict(self._target.environment), **(env or {})})
        async with self._limited(command_name(argv), timeout), self._using(timeout) as link, link.channels:
            with unreachable_when_lost(self._name):
                process = await open_channel(partial(link.connection.create_process, command, encoding=None))
            try:
                return await _collect(process, input, argv, most_bytes)
            finally:
                _abandon(process)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AsyncIterator[SshStream]:
        command = _command_line(argv, dict(self._target.environment))
        opening_limit = timeout_idle or SMALL_CALL_SECONDS
        async with self._using(opening_limit) as link, AsyncExitStack() as channel:
            async with self._limited(command_name(argv), opening_limit):
                await channel.enter_async_context(link.channels)
                with unreachable_when_lost(self._name):
                    process = await open_channel(partial(link.connection.create_process, command, encoding=None))
            errors = asyncio.create_task(_tail(process.stderr))
            try:
                yield SshStream(process, errors, limited=partial(self._limited, command_name(argv), timeout_idle))
            finally:
                _abandon(process)
                errors.cancel()

    async def converse(self, argv: Sequence[str], *, timeout: float) -> SshConversation:
        """Start a command that is asked repeatedly. It holds one channel until it is closed."""
        command = _command_line(argv, dict(self._target.environment))
        async with AsyncExitStack() as opened:
            async with self._limited(command_name(argv), timeout):
                link = await opened.enter_async_context(self._using(timeout))
                await opened.enter_async_context(link.channels)
                opening = partial(link.connection.create_process, command, encoding=None, stderr=asyncssh.DEVNULL)
                with unreachable_when_lost(self._name):
                    process = await open_channel(opening)
            return SshConversation(process, link, opened.pop_all(), retire=self._retire)

    async def push(
        self,
        local: Path,
        remote: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        target, what = PurePosixPath(remote), f"{self._name}, during the upload of {remote},"
        async with self._transfer(what, timeout_idle, progress) as (sftp, moved):
            with refused_by_far_disk(f"{remote} cannot be written"):
                await make_folder(sftp, target.parent)
            await send_whole(sftp, local, target, self._part_name(remote), moved)

    async def pull(
        self,
        remote: str,
        local: Path,
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        part = local.with_name(f".{os.urandom(8).hex()}.part")
        what = f"{self._name}, during the download of {remote},"
        with refused_by_near_disk(f"{local} cannot be written"):
            _make_parent(local)
        try:
            async with self._transfer(what, timeout_idle, progress) as (sftp, moved):
                await fetch_file(sftp, remote, part, moved, size=size)
            with refused_by_near_disk(f"{local} cannot be replaced"):
                _rename(part, local)
        finally:
            _remove(part)

    async def push_spans(
        self,
        local: Path,
        remote: str,
        spans: Sequence[Span],
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        what = f"{self._name}, during the upload of {remote},"
        by_sftp, tail = await self._split_for_rsync(spans, size)
        async with self._transfer(what, timeout_idle, _of_all(progress, spans)) as (sftp, moved):
            with refused_by_far_disk(f"{remote} cannot be written"):
                await make_folder(sftp, PurePosixPath(remote).parent)
            await send_file(sftp, local, remote, moved, by_sftp)
            if tail is not None:
                with refused_by_far_disk(f"{remote} cannot be shortened"):
                    await sftp.truncate(remote, tail.offset)
        if tail is not None:
            async with self._rsync(what, timeout_idle, _of_all(progress, spans, by_sftp)) as (rsync, moved, lost):
                await rsync.send_tail(local, remote, tail, moved, lost)

    async def pull_spans(
        self,
        remote: str,
        local: Path,
        spans: Sequence[Span],
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        with refused_by_near_disk(f"{local} cannot be written"):
            _make_parent(local)
        what = f"{self._name}, during the download of {remote},"
        by_sftp, tail = await self._split_for_rsync(spans, size)
        async with self._transfer(what, timeout_idle, _of_all(progress, spans)) as (sftp, moved):
            await fetch_file(sftp, remote, local, moved, by_sftp, size=size)
        if tail is not None:
            with refused_by_near_disk(f"{local} cannot be shortened"):
                await asyncio.to_thread(os.truncate, local, tail.offset)
            async with self._rsync(what, timeout_idle, _of_all(progress, spans, by_sftp)) as (rsync, moved, lost):
                await rsync.fetch_tail(remote, local, tail, moved, lost)

    async def push_many(
        self,
        files: Mapping[str, Path],
        folder: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        what = f"{self._name}, during the upload of {len(files)} files,"
        worth_it = self._target.way == "rsync" or len(files) >= self._target.rsync_from_files
        if self._target.way != "sftp" and worth_it and await self._has_rsync():
            with staged(files) as stage:
                async with self._rsync(what, timeout_idle, progress) as (rsync, moved, lost):
                    await rsync.send_tree(stage.folder, folder, partial(_with_total, moved, stage.size), lost)
            return
        async with self._transfer(what, timeout_idle, progress) as (sftp, moved):
            await send_files(sftp, files, folder, f".{self._part_token}-", moved)

    async def rename(self, old: str, new: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        async with self._limited(self._name, timeout), self._sftp(timeout) as sftp:
            with refused_by_far_disk(f"{new} cannot be replaced"):
                await sftp.posix_rename(old, new)

    async def remove(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        async with self._limited(self._name, timeout), self._sftp(timeout) as sftp:
            with refused_by_far_disk(f"{path} cannot be removed"), suppress(asyncssh.SFTPNoSuchFile):
                await sftp.remove(path)

    async def stat(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> FileStat | None:
        async with self._limited(self._name, timeout), self._sftp(timeout) as sftp:
            try:
                found = await sftp.stat(path)
            except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection):
                raise
            except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
                return None
            except asyncssh.SFTPError as problem:
                raise Unreachable(f"{path} on {self._name} cannot be read: {problem.reason}") from problem
        is_dir = found.type == asyncssh.FILEXFER_TYPE_DIRECTORY
        return FileStat(size=found.size or 0, mtime=float(found.mtime or 0), is_dir=is_dir)

    @asynccontextmanager
    async def forward(self, port: int, *, timeout: float = SMALL_CALL_SECONDS) -> AsyncIterator[int]:
        async with self._using(timeout) as link:
            async with self._limited(self._name, timeout):
                with unreachable_when_lost(self._name):
                    listener = await link.connection.forward_local_port("127.0.0.1", 0, "127.0.0.1", port)
            try:
                yield listener.get_port()
            finally:
                listener.close()
                await listener.wait_closed()

    async def close(self) -> None:
        """Close the connection; a later call would open another."""
        link, self._link = self._link, None
        if link is None:
            return
        link.connection.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await link.connection.wait_closed()
        except TimeoutError:
            link.connection.abort()

    @property
    def _name(self) -> str:
        return self._target.name

    def _part_name(self, remote: str) -> str:
        return f".{self._part_token}-{sha256(remote.encode()).hexdigest()[:16]}.part"

    @asynccontextmanager
    async def _limited(self, what: str, seconds: float | None) -> AsyncIterator[asyncio.Timeout]:
        """Raise Unreachable at the timeout and retire the connection: the next call opens another."""
        try:
            async with asyncio.timeout(seconds) as limit:
                yield limit
        except TimeoutError:
            self._retire()
            raise no_answer(what, seconds or 0.0) from None

    @asynccontextmanager
    async def _using(self, seconds: float) -> AsyncIterator[_Link]:
        async with self._limited(self._name, seconds):
            link = await self._open_link()
        link.users += 1
        try:
            yield link
        finally:
            link.users -= 1
            link.drop_if_unused()

    @asynccontextmanager
    async def _transfer(
        self, what: str, idle_seconds: float, progress: Progress | None
    ) -> AsyncIterator[tuple[asyncssh.SFTPClient, Progress]]:
        """Open an SFTP transfer; every block that moves extends its timeout by `idle_seconds`."""
        async with self._limited(what, idle_seconds) as limit, self._sftp(idle_seconds) as sftp:
            yield sftp, _extending(limit, idle_seconds, progress)

    @asynccontextmanager
    async def _rsync(
        self, what: str, idle_seconds: float, progress: Progress | None
    ) -> AsyncIterator[tuple[Rsync, Progress, Callable[[], Awaitable[object]]]]:
        """As `_transfer`, with rsync; the transfer fails when our own connection is lost."""
        async with self._limited(what, idle_seconds) as limit, self._using(idle_seconds) as link:
            with opened_rsync(self._target, link.connection, idle_seconds) as rsync:
                if rsync is None:
                    raise TransferFailed(f"{what} rsync or ssh disappeared from this computer")
                yield rsync, _extending(limit, idle_seconds, progress), link.connection.wait_closed

    async def _split_for_rsync(self, spans: Sequence[Span], size: int) -> tuple[Sequence[Span], Span | None]:
        """Return the spans for SFTP, and the end of the file if it is large enough for rsync."""
        gaps, tail = split_tail(spans, size)
        least = 0 if self._target.way == "rsync" else self._target.rsync_from_bytes
        if self._target.way == "sftp" or tail is None or tail.size < least or not await self._has_rsync():
            return spans, None
        return gaps, tail

    async def _has_rsync(self) -> bool:
        """Return whether both sides have rsync and the system's ssh can log in; checked once."""
        if self._rsync_answers is None:
            async with self._using(SMALL_CALL_SECONDS) as link:
                with opened_rsync(self._target, link.connection, SMALL_CALL_SECONDS) as rsync:
                    answer = False if rsync is None else await rsync.answers()
            if answer is None:  # is the machine unreachable, or only by the system's ssh?
                require_success(["true"], await self.run(["true"], timeout=SMALL_CALL_SECONDS))
            self._rsync_answers = bool(answer)
        if not self._rsync_answers and self._target.way == "rsync":
            raise TransferFailed(
                f"rsync cannot be used with {self._name}: it is missing on one side, or the system's ssh cannot log in",
                hint="set transfer.way to auto, or install rsync on both sides",
            )
        return self._rsync_answers

    @asynccontextmanager
    async def _sftp(self, seconds: float) -> AsyncIterator[asyncssh.SFTPClient]:
        """Open a separate channel: closing it ends what runs on it, without waiting for the server."""
        async with self._using(seconds) as link, link.channels:
            with unreachable_when_lost(self._name):
                sftp = await open_channel(link.connection.start_sftp_client)
                try:
                    yield sftp
                finally:
                    sftp.exit()

    async def _open_link(self) -> _Link:
        async with self._opening:
            if self._link is None or self._link.connection.is_closed():
                self._link = _Link(connection=await open_connection(self._target))
            return self._link

    def _retire(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.retired = True
            link.drop_if_unused()


class SshStream:
    """Output of one remote process."""

    def __init__(
        self,
        process: asyncssh.SSHClientProcess[bytes],
        errors: asyncio.Task[bytes],
        *,
        limited: Callable[[], AbstractAsyncContextManager[object]],
    ) -> None:
        self._process = process
        self._errors = errors
        self._limited = limited
        self._ended: Completed | None = None

    @property
    def exit_status(self) -> int | None:
        return None if self._ended is None else self._ended.exit_status

    @property
    def stderr(self) -> bytes:
        return b"" if self._ended is None else self._ended.stderr

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with unreachable_when_lost("the machine"):
            while chunk := await self._next_chunk():
                yield chunk
            async with self._limited():
                await self._process.wait_closed()
            self._ended = Completed(exit_status=_exit_status(self._process), stderr=await self._errors)
        if self._ended.exit_status is None:
            raise Unreachable("the connection was lost; how the command ended is unknown")

    async def _next_chunk(self) -> bytes:
        async with self._limited():
            return await self._process.stdout.read(_CHUNK_BYTES)


class SshConversation:
    """One remote process that is asked repeatedly."""

    def __init__(
        self,
        process: asyncssh.SSHClientProcess[bytes],
        link: _Link,
        opened: AsyncExitStack,
        *,
        retire: Callable[[], None],
    ) -> None:
        self._process = process
        self._link = link
        self._opened = opened
        self._retire = retire

    @property
    def is_open(self) -> bool:
        return not self._link.retired and not self._link.connection.is_closed() and self._process.returncode is None

    async def send(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except asyncssh.Error as problem:
            raise BrokenPipeError from problem

    async def read(self, n: int = -1, /) -> bytes:
        with suppress(asyncssh.Error, OSError):
            return await self._process.stdout.read(n)
        return b""

    async def close(self) -> None:
        """Close its standard input, which ends it, and the channel."""
        with suppress(OSError, asyncssh.Error):
            self._process.stdin.write_eof()
        _abandon(self._process)
        await self._opened.aclose()

    async def give_up(self) -> None:
        if not self._link.retired:
            self._retire()
        await self.close()


def _extending(limit: asyncio.Timeout, idle_seconds: float, progress: Progress | None) -> Progress:
    """Wrap `progress` so that each call also extends the timeout by `idle_seconds`."""
    loop = asyncio.get_running_loop()

    def moved(done: int, total: int) -> None:
        if not limit.expired():
            limit.reschedule(loop.time() + idle_seconds)
        if progress is not None:
            progress(done, total)

    return moved


def _with_total(moved: Progress, total: int, done: int) -> None:
    moved(done, total)


def _of_all(progress: Progress | None, spans: Sequence[Span], before: Sequence[Span] = ()) -> Progress | None:
    """Count progress for all spans while some of them move, after those `before`."""
    if progress is None:
        return None
    moved_before, total = (sum(span.size for span in each) for each in (before, spans))
    return lambda done, _total: progress(moved_before + done, total)


def _command_line(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return one line for the machine's shell. Servers ignore most variables from a client, so `env` sets them."""
    assignments = [f"{name}={value}" for name, value in env.items()]
    return shlex.join(["env", *assignments, *argv] if assignments else argv)


async def _collect(
    process: asyncssh.SSHClientProcess[bytes], input: bytes | None, argv: Sequence[str], most_bytes: int
) -> Completed:
    errors = asyncio.create_task(_tail(process.stderr))
    try:
        with suppress(BrokenPipeError):  # a command need not read its input: one that has ended has an answer, too
            if input:
                process.stdin.write(input)
            process.stdin.write_eof()
        stdout = await read_answer(process.stdout, argv, most_bytes)
        stderr = await errors
        await process.wait_closed()
    except (asyncssh.DisconnectError, OSError):
        return Completed(exit_status=None)
    finally:
        errors.cancel()
    return Completed(exit_status=_exit_status(process), stdout=stdout, stderr=stderr)


def _exit_status(process: asyncssh.SSHClientProcess[bytes]) -> int | None:
    """The exit status as a shell reports it; None when the connection ended before the server sent one."""
    status = process.returncode
    return 128 - status if status is not None and status < 0 else status


def _abandon(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """End the command if it still runs, as far as the server cooperates."""
    with suppress(OSError, asyncssh.Error):
        if process.returncode is None:
            process.terminate()
        process.close()


async def _tail(reader: asyncssh.SSHReader[bytes]) -> bytes:
    """The end of stderr; empty when the connection is lost."""
    with suppress(asyncssh.Error, OSError):
        return await read_tail(reader)
    return b""


def _make_parent(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)


def _rename(part: Path, target: Path) -> None:
    part.replace(target)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
