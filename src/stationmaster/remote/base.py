"""What every way of reaching a machine promises."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from stationmaster.errors import CommandFailed, Unreachable

#: Called with (bytes moved so far, bytes in all).
Progress = Callable[[int, int], None]

#: A transfer in which not one byte moved for so long is given up.
TRANSFER_IDLE_SECONDS = 60.0

#: Time limit of the calls that carry next to nothing (stat, opening a stream or a forward).
SMALL_CALL_SECONDS = 30.0

_STDERR_TAIL_CHARACTERS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What a command left behind; `exit_status` None means that nobody knows how, or whether, it ended."""

    exit_status: int | None
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    size: int
    mtime: float
    is_dir: bool


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
    ) -> Completed:
        """Run one command to its end; exit status None when the connection died after it was sent.

        `env` is visible to other users of the machine: secrets go through `input`.
        """

    def stream(self, argv: Sequence[str], *, timeout_idle: float | None = None) -> AbstractAsyncContextManager[Stream]:
        """Run a command and yield its output as it comes; leaving the block closes its standard input and output."""

    async def push(
        self,
        local: Path,
        remote: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Put one whole file there: under a temporary name, then renamed; parent folders are made.

        Raises TransferFailed when the far side refuses to write.
        """

    async def pull(
        self,
        remote: str,
        local: Path,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Fetch one whole file: under a temporary name, then renamed; parent folders are made.

        Raises TransferFailed when the file is not there or cannot be read.
        """

    async def stat(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> FileStat | None:
        """What is at `path`; None only when the machine itself says that nothing is there."""

    def forward(self, port: int, *, timeout: float = SMALL_CALL_SECONDS) -> AbstractAsyncContextManager[int]:
        """A port on this computer's loopback that leads to `port` on the machine's loopback while the block lasts."""

    async def close(self) -> None:
        """Drop what is held open. Nothing on the machine ends by it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file."""

    offset: int
    size: int


@runtime_checkable
class SupportsSpans(Protocol):
    """A Remote that can also move parts of files, so that a transfer which broke off can be taken up again."""

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
        """These parts of `local`, which has `size` bytes, are in `remote`, whose other bytes stay as they are.

        Parent folders are made. Where `spans` reach to the end of the file, what lay there before may be cut off.
        What was written stays when the connection is lost. Raises TransferFailed when the far side refuses to write.
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
        """These parts of `remote` are in `local`; otherwise as `push_spans`."""

    async def rename(self, old: str, new: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        """Give a file another name, replacing what had it. Raises TransferFailed when that is refused."""

    async def remove(self, path: str, *, timeout: float = SMALL_CALL_SECONDS) -> None:
        """The file is not there, whether or not it was."""


@runtime_checkable
class SupportsMany(Protocol):
    """A Remote to which many small files can go together, without round trips for each."""

    async def push_many(
        self,
        files: Mapping[str, Path],
        folder: str,
        *,
        progress: Progress | None = None,
        timeout_idle: float = TRANSFER_IDLE_SECONDS,
    ) -> None:
        """Every file is at its path below `folder`, whole; parent folders are made.

        Raises TransferFailed when the far side refuses to write; some of the files may be there then.
        """


async def check(
    remote: Remote,
    argv: Sequence[str],
    *,
    input: bytes | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float,
) -> bytes:
    """The command's standard output; CommandFailed if it failed, Unreachable if nobody knows."""
    done = await remote.run(argv, input=input, env=env, timeout=timeout)
    require_success(argv, done)
    return done.stdout


def require_success(argv: Sequence[str], done: Completed) -> None:
    """Nothing if the command ended well; else the error that says which command, how, and why."""
    if done.exit_status is None:
        raise Unreachable(f"the connection was lost while {command_name(argv)} ran; how it ended is unknown")
    if done.exit_status != 0:
        said = done.stderr.decode(errors="replace").strip()[-_STDERR_TAIL_CHARACTERS:]
        raise CommandFailed(f"{command_name(argv)} ended with status {done.exit_status}: {said or 'it said nothing'}")


def command_name(argv: Sequence[str]) -> str:
    """The command, short enough for one line of a message."""
    line = shlex.join(argv).replace("\n", "\\n")
    return f"`{line}`" if len(line) <= 120 else f"`{line[:117]}…`"


def no_answer(what: str, seconds: float) -> Unreachable:
    """The error for a time limit that ran out."""
    return Unreachable(f"{what} did not answer within {seconds:g} s; its state is unknown")
