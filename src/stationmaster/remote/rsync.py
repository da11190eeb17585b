"""Transfer the rest of a big file, or many small ones, with the system's rsync through the system's `ssh`.

Rsync only carries bytes: SHA-256 decides which are missing and whether they arrived. It appends to a partial file with
its own name, so what arrived stays, however rsync ends on either side.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shlex
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from stationmaster.errors import FalseFile, TransferFailed, Unreachable
from stationmaster.remote.base import SMALL_CALL_SECONDS, Progress, Span
from stationmaster.remote.ssh_client import SshClient, ssh_client
from stationmaster.remote.ssh_connection import SshTarget

_VERSION = re.compile(rb"^rsync +version v?(\d+)\.(\d+)", re.MULTILINE)
_LEAST_VERSION = (3, 1)  # the first with progress that we can parse

_SSH_FAILED = 255
_KILLED = 20
_LOST = frozenset({10, 12, _KILLED, 30, 35, _SSH_FAILED})  # also the exit codes of a broken or silent connection
_FULL = re.compile(r"\((28|122)\)")  # disk full or quota used up: the number is the same in every language
_TOO_LONG = re.compile(r"\(27\)")  # a file became too large for the limit of its process
_FILE_SIZE_SIGNALS = frozenset({-signal.SIGXFSZ, 128 + signal.SIGXFSZ})
_LIMIT_UNIT_BYTES = 512
_END_SECONDS = 1.0  # rsync itself would wait ten seconds for its peer
_CHUNK_BYTES = 1 << 16
_KEPT_BYTES = 1 << 14

_APPEND = ("--append",)
_WHOLE = ("--recursive", "--copy-links", "--ignore-times", "--partial-dir=.rsync-partial")

_Moved = Callable[[int], None]
_Lost = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rsync:
    """The local rsync and how to reach the machine's, which runs with `environment` as every command does."""

    program: str
    client: SshClient
    environment: tuple[tuple[str, str], ...]
    idle_seconds: float

    async def answers(self) -> bool | None:
        """Return whether both sides have a usable rsync; None when `ssh` could not log in, for any reason."""
        if not await self._is_new_enough([self.program, "--version"]):
            return False
        far = shlex.join([*self._far, "--version"])
        return await self._is_new_enough([*self.client.argv, self.client.host, far])

    async def send_tail(self, local: Path, remote: str, tail: Span, moved: Progress, lost: _Lost) -> None:
        """Append the rest of `local` to `remote`, which ends where `tail` begins. Fails when `lost` returns."""
        failure = f"{local} could not be sent to {remote}"
        await self._carry(_APPEND, _here(local), self._there(remote), _of_tail(tail, moved), lost, failure)

    async def fetch_tail(self, remote: str, local: Path, tail: Span, moved: Progress, lost: _Lost) -> None:
        """Append the rest of `remote` to `local`, which ends where `tail` begins. Fails when `lost` returns."""
        failure = f"{remote} could not be fetched to {local}"
        most_bytes = tail.offset + tail.size
        await self._carry(
            _APPEND, self._there(remote), _here(local), _of_tail(tail, moved), lost, failure, most_bytes=most_bytes
        )

    async def send_tree(self, folder: Path, remote: str, moved: Callable[[int], None], lost: _Lost) -> None:
        """Upload every file below `folder`, following links, to `remote`; each appears there whole."""
        failure = f"files could not be sent to {remote}"
        await self._carry(_WHOLE, f"{_here(folder)}/", self._there(remote), moved, lost, failure)

    @property
    def _far(self) -> list[str]:
        assignments = [f"{name}={value}" for name, value in self.environment]
        return ["env", *assignments, "rsync"] if assignments else ["rsync"]

    def _there(self, path: str) -> str:
        host = f"[{self.client.host}]" if ":" in self.client.host else self.client.host
        return f"{host}:{path}"

    async def _is_new_enough(self, argv: Sequence[str]) -> bool | None:
        process = await self._spawn(argv)
        try:
            async with asyncio.timeout(SMALL_CALL_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            return None
        finally:
            await _end(process)
        found = _VERSION.search(output)
        if found is None:
            return None if process.returncode == _SSH_FAILED else False
        return (int(found[1]), int(found[2])) >= _LEAST_VERSION

    async def _carry(
        self,
        how: Sequence[str],
        source: str,
        target: str,
        moved: _Moved,
        lost: _Lost,
        failure: str,
        *,
        most_bytes: int | None = None,
    ) -> None:
        """Run rsync; with `most_bytes` the system itself lets it write no file longer than that."""
        argv = [
            *(self.program, *how, "--protect-args", "--no-motd"),
            *("--info=progress2", "--no-human-readable", "--outbuf=N"),
            f"--timeout={math.ceil(self.idle_seconds)}",
            *("--rsh", " ".join(f"'{word}'" for word in self.client.argv)),
            *("--rsync-path", shlex.join(self._far)),
            *("--", source, target),
        ]
        process = await self._spawn(argv if most_bytes is None else _writing_at_most(most_bytes, argv))
        status, stderr = await _run_to_end(process, moved, lost)
        if status != 0 and most_bytes is not None and (_TOO_LONG.search(stderr) or status in _FILE_SIZE_SIGNALS):
            raise FalseFile(f"{failure}: more than the {most_bytes:,} bytes came that were reported")
        if status != 0:
            raise _problem(failure, status, stderr)

    async def _spawn(self, argv: Sequence[str]) -> Process:
        """Start it in its own process group, so that its `ssh` can be ended with it."""
        return await asyncio.create_subprocess_exec(
            *argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True, env=self.client.environment
        )


@contextmanager
def opened_rsync(
    target: SshTarget, connection: asyncssh.SSHClientConnection, idle_seconds: float
) -> Iterator[Rsync | None]:
    """Yield an Rsync to the machine of `connection`; None where this computer has no rsync or no ssh."""
    program, host_key = shutil.which("rsync"), connection.get_server_host_key()
    if program is None or host_key is None:
        yield None
        return
    with ssh_client(target, host_key.export_public_key().decode()) as client:
        if client is None:
            yield None
        else:
            environment = target.environment
            yield Rsync(program=program, client=client, environment=environment, idle_seconds=idle_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A folder of links to files from many places."""

    folder: Path
    size: int


@contextmanager
def staged(files: Mapping[str, Path]) -> Iterator[Stage]:
    """Yield a temporary folder with a link to every file at its path."""
    with tempfile.TemporaryDirectory(prefix="stationmaster-stage-") as name:
        size = 0
        for path, local in files.items():
            link = Path(name, path)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(local.absolute())
            size += local.stat().st_size
        yield Stage(folder=Path(name), size=size)


def split_tail(spans: Sequence[Span], size: int) -> tuple[Sequence[Span], Span | None]:
    """Split `spans` into gaps and the missing end of a file of `size` bytes: only the end can be appended."""
    if spans and spans[-1].offset + spans[-1].size == size:
        return spans[:-1], spans[-1]
    return spans, None


def bytes_moved(text: bytes) -> int | None:
    """Return the byte count in the last complete progress line.

    >>> bytes_moved(b"\\r   20032768  33%    0.00kB/s    0:00:00  \\r   42315008  70%   20.01MB/s    0:00:00  ")
    42315008
    """
    found = re.findall(rb"[\r\n]\s*(\d+)\s+\d+%", b"\n" + text)
    return int(found[-1]) if found else None


def _writing_at_most(most_bytes: int, argv: Sequence[str]) -> list[str]:
    """The command under a limit for the size of the files that it writes: the machine's rsync is a stranger's.

    The shell counts in units of 512 bytes; what is too long by less than one is found by its size and hash.
    """
    units = -(-most_bytes // _LIMIT_UNIT_BYTES)
    return ["/bin/sh", "-c", 'ulimit -f "$1" && shift && exec "$@"', "sh", str(units), *argv]


def _of_tail(tail: Span, moved: Progress) -> _Moved:
    """Count only the tail: rsync counts what was there before as well."""
    return lambda done: moved(max(0, done - tail.offset), tail.size)


def _here(local: Path) -> str:
    """The absolute path: a colon before the first slash would name a host."""
    return str(local.absolute())


async def _run_to_end(process: Process, moved: _Moved, lost: _Lost) -> tuple[int, str]:
    """Wait for rsync; return its exit code and the end of its stderr. Raises Unreachable when `lost` returns first."""
    work = asyncio.ensure_future(_follow(process, moved))
    gone = asyncio.ensure_future(lost())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise Unreachable("the connection to the machine was lost during the transfer")
        return await work
    finally:
        await _end(process)
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _follow(process: Process, moved: _Moved) -> tuple[int, str]:
    assert process.stdout is not None
    assert process.stderr is not None
    stderr, _ = await asyncio.gather(_tail(process.stderr), _progress(process.stdout, moved))
    return await process.wait(), stderr.decode(errors="replace")


async def _progress(stdout: asyncio.StreamReader, moved: _Moved) -> None:
    line = b""
    while chunk := await stdout.read(_CHUNK_BYTES):
        line = (line + chunk)[-_KEPT_BYTES:]
        if (done := bytes_moved(line)) is not None:
            moved(done)
            line = line.rpartition(b"\r")[2]


async def _tail(stderr: asyncio.StreamReader) -> bytes:
    kept = b""
    while chunk := await stderr.read(_CHUNK_BYTES):
        kept = (kept + chunk)[-_KEPT_BYTES:]
    return kept


def _problem(failure: str, status: int, stderr: str) -> TransferFailed | Unreachable:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if (status in _LOST or status < 0) and not _FULL.search(stderr):
        return Unreachable(
            f"the connection was lost during the transfer: {lines[0] if lines else f'rsync exited with code {status}'}"
        )
    return TransferFailed(f"{failure}: {lines[0] if lines else f'rsync exited with code {status}'}")


async def _end(process: Process) -> None:
    """End rsync and its `ssh`, first with SIGTERM: rsync then writes out what it has."""
    for number, seconds in ((signal.SIGTERM, _END_SECONDS), (signal.SIGKILL, None)):
        if process.returncode is not None:
            return
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass  # ended a moment ago
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            continue
