"""The way to a server that forks commands: one for all processes of a test run, which ends with the last of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from tests.support.commands.client import ForkedCommand
from tests.support.commands.server_folder import HOLD, SOCKET, locked
from tests.support.parallel_run import TEST_RUN
from tests.support.programs import ROOT, program


class ForkServer:
    """A process that has imported everything; each command is a child of it."""

    def __init__(self, name: str, module: str) -> None:
        """`module` is the server's program; `name` is the beginning of its folder's name."""
        run = os.environ.get(TEST_RUN) or uuid4().hex
        self.folder = Path(tempfile.gettempdir()) / f"{name}-{run}"
        self.address = self.folder / SOCKET
        with locked(self.folder):
            self._hold = self._held() or self._start(module)  # until this process ends

    def prepare(self) -> None:
        """Put into its folder what the server or its users need; called once, before it starts."""

    def _held(self) -> socket.socket | None:
        """A connection that keeps the server; None where there is no server."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.address))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        connection.sendall(HOLD)
        assert connection.recv(64) == b"ready\n"
        return connection

    def _start(self, module: str) -> subprocess.Popen[bytes]:
        """A server that stays as long as this process has its standard input open."""
        self.address.unlink(missing_ok=True)
        self.prepare()
        process = subprocess.Popen(
            [*program(module), str(self.folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as said:
            assert said.readline() == b"ready\n", f"{module} did not start"
        return process

    @contextmanager
    def started(
        self, *words: str, environ: Mapping[str, str], cwd: Path, umask: int | None = None
    ) -> Iterator[ForkedCommand]:
        """A command that runs until it is ended, at the latest with the block; nobody reads what it prints."""
        with Path(os.devnull).open("r+") as nothing:
            streams = [nothing.fileno()] * 3
            address = str(self.address)
            with ForkedCommand(address, words, environ=environ, cwd=str(cwd), streams=streams, umask=umask) as command:
                handle = os.pidfd_open(command.pid)
                try:
                    yield command
                finally:
                    with suppress(ProcessLookupError):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                    os.close(handle)

    def run(
        self,
        words: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: Path,
        seconds: float,
        umask: int | None = None,
        stdin: bytes = b"",
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end."""
        with _given(stdin) as given, _scratch() as out, _scratch() as err:
            streams = [stream.fileno() for stream in (given, out, err)]
            address = str(self.address)
            with ForkedCommand(address, words, environ=environ, cwd=str(cwd), streams=streams, umask=umask) as command:
                try:
                    code = command.wait(seconds)
                except TimeoutError:
                    os.kill(command.pid, signal.SIGKILL)
                    said = (_read(out)[-500:] + _read(err)[-500:]).decode(errors="replace")
                    raise AssertionError(f"{' '.join(words)} takes too long; it said: {said}") from None
            return subprocess.CompletedProcess([*words], code, _read(out), _read(err))

    def write_client(self, path: Path) -> None:
        """A program at this path; a child of this server does the work."""
        client = Path(__file__).with_name("client.py")
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {client} {self.address} "$@"\n')
        path.chmod(0o755)


def _given(content: bytes) -> IO[bytes]:
    if not content:
        return Path(os.devnull).open("rb")
    file = _scratch()
    file.write(content)
    file.seek(0)
    return file


def _scratch() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
