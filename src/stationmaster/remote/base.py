"""The interface to a machine, whichever way it is reached."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from stationmaster.errors import CommandFailed, FalseAnswer, Unreachable
from stationmaster.model.intake_limits import ANSWER_BYTES, STDERR_BYTES

#: Called with (bytes transferred so far, total bytes).
Progress = Callable[[int, int], None]

#: A transfer that moves no byte for this long fails.
TRANSFER_IDLE_SECONDS = 60.0

#: Timeout of the calls that carry almost no data (stat, opening a stream or a forward).
SMALL_CALL_SECONDS = 30.0

_STDERR_TAIL_CHARACTERS = 600
_CHUNK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """The result of a command; `exit_status` None: it is unknown how, or whether, it ended."""

    exit_status: int | None
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    size: int
    mtime: float
    is_dir: bool


class Reader(Protocol):
    """The output of a process, as both asyncio and asyncssh give it."""

    async def read(self, n: int = -1, /) -> bytes: ...


class Stream(Protocol):
    """Output of a running command, in the chunks it came in; `exit_status` is known once the chunks have ended."""

    @property
    def exit_status(self) -> int | None: ...

    @property
    def stderr(self) -> bytes: ...

    def __aiter__(self) -> AsyncIterator[bytes]: ...


class Remote(Protocol):
    """One machine. Each method is a single conversation; retries and waiting belong to control.

    Every method raises Unreachable when the machine does not answer: what was asked may or may not have
    happened. Paths are absolute; relative ones start at the folder that commands start in.
    """

    async def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float,
        most_bytes: int = ANSWER_BYTES,
    ) -> Completed:
        """Run one command to its end; exit status None when the connection died after it was sent.

        `env` is visible to other users of the machine: secrets go through `input`. Raises FalseAnswer when it prints
        more than `most_bytes`; of its stderr only the end is returned.
        """

    def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AbstractAsyncContextManager[Stream]:
        """Run a command and yield its output as it arrives; leaving the block closes its standard input and output."""

    async def push(
        self,
        local: Path,
        remote: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Upload one file: written under a temporary name, then renamed. Creates parent folders.

        Raises TransferFailed when the machine refuses the write.
        """

    async def pull(
        self,
        remote: str,
        local: Path,
        *,
        size: int,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Download one file of `size` bytes: written under a temporary name, then renamed. Creates parent folders.

        Raises TransferFailed when the file is not there or cannot be read, and FalseFile when it is longer or shorter:
        no more than `size` bytes are ever written.
        """

    async def stat(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> FileStat | None:
        """Return what is at `path`; None only when the machine itself reports that nothing is there."""

    def forward(self, port: int, *, timeout: float = SMALL_CALL_SECONDS) -> AbstractAsyncContextManager[int]:
        """Yield a local loopback port that forwards to `port` on the machine's loopback while the block lasts."""

    async def close(self) -> None:
        """Close the connection. Nothing that runs on the machine stops."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file."""

    offset: int
    size: int


@runtime_checkable
class SupportsSpans(Protocol):
    """A Remote that can also transfer parts of files, so that an interrupted transfer can resume."""

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
        """Write these parts of `local`, which has `size` bytes, into `remote`; its other bytes stay as they are.

        Creates parent folders. Where `spans` reach to the end of the file, what was there before may be cut off.
        What was written stays when the connection is lost. Raises TransferFailed when the machine refuses the write.
        """

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
        """Write these parts of `remote` into `local`; otherwise as `push_spans`. Raises FalseFile for more bytes."""

    async def rename(self, old: str, new: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        """Rename a file, replacing what had the new name. Raises TransferFailed when the machine refuses."""

    async def remove(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        """Remove the file if it is there."""


@runtime_checkable
class SupportsMany(Protocol):
    """A Remote that can upload many small files together, without a round trip for each."""

    async def push_many(
        self,
        files: Mapping[str, Path],
        folder: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Upload every file to its path below `folder`; each appears there whole. Creates parent folders.

        Raises TransferFailed when the machine refuses a write; some of the files may be there then.
        """


class Conversation(Protocol):
    """A running command that reads what it is sent and answers."""

    @property
    def is_open(self) -> bool:
        """Whether the connection is still used: a command on one that was given up may never answer."""

    async def send(self, data: bytes) -> None:
        """Send bytes to its standard input. Raises OSError once the command no longer reads."""

    async def read(self, n: int = -1, /) -> bytes:
        """Return some of what it printed; empty at its end, also when the connection is lost."""

    async def close(self) -> None:
        """End the command."""

    async def give_up(self) -> None:
        """End the command that did not answer in time, and whatever connection it used."""


@runtime_checkable
class SupportsConversations(Protocol):
    """A Remote that can also keep a command running and ask it repeatedly."""

    async def converse(self, argv: Sequence[str], *, timeout: float) -> Conversation:
        """Start a command. Raises CommandFailed where that is impossible."""


async def check(
    remote: Remote,
    argv: Sequence[str],
    *,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float,
) -> bytes:
    """Run a command and return its stdout. Raises CommandFailed if it failed, Unreachable if that is unknown."""
    done = await remote.run(argv, input=input, env=env, timeout=timeout)
    require_success(argv, done)
    return done.stdout


def require_success(argv: Sequence[str], done: Completed) -> None:
    """Raise an error with the command, its exit status and the end of its stderr, unless it exited with 0."""
    if done.exit_status is None:
        raise Unreachable(f"the connection was lost while {command_name(argv)} ran; how it ended is unknown")
    if done.exit_status != 0:
        stderr = done.stderr.decode(errors="replace").strip()[-_STDERR_TAIL_CHARACTERS:]
        raise CommandFailed(f"{command_name(argv)} exited with status {done.exit_status}: {stderr or 'no stderr'}")


def command_name(argv: Sequence[str]) -> str:
    """The command, short enough for one line of a message."""
    line = shlex.join(argv).replace("\n", "\\n")
    return f"`{line}`" if len(line) <= 120 else f"`{line[:117]}…`"


async def read_answer(reader: Reader, argv: Sequence[str], most_bytes: int) -> bytes:
    """Read a command's output to its end. Raises FalseAnswer as soon as there is more of it than `most_bytes`."""
    pieces, size = [], 0
    while piece := await reader.read(_CHUNK_BYTES):
        size += len(piece)
        if size > most_bytes:
            raise too_long(argv, most_bytes)
        pieces.append(piece)
    return b"".join(pieces)


async def read_tail(reader: Reader, most_bytes: int = STDERR_BYTES) -> bytes:
    """Read to the end, so that nothing is blocked, and return the last bytes."""
    kept = b""
    while piece := await reader.read(_CHUNK_BYTES):
        kept = (kept + piece)[-most_bytes:]
    return kept


def too_long(argv: Sequence[str], most_bytes: int) -> FalseAnswer:
    return FalseAnswer(f"{command_name(argv)} answered with more than {most_bytes:,} bytes; the rest was not read")


def no_answer(what: str, seconds: float) -> Unreachable:
    """Return the error for an expired timeout."""
    return Unreachable(f"{what} did not answer within {seconds:g} s; its state is unknown")
