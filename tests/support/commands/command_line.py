"""The `stationmaster` command as a separate process with its own environment, forked from a ready server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from tests.support.commands.client import ForkedCommand
from tests.support.commands.server_folder import COMMAND, HOLD, SOCKET, locked
from tests.support.parallel_run import TEST_RUN
from tests.support.programs import ROOT, program

PATIENCE_SECONDS = 150.0


def stationmaster(
    *words: str,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    seconds: float = PATIENCE_SECONDS,
    umask: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; its standard input is empty, so that no question can be answered."""
    return command_server().run(words, environ=environ, cwd=cwd or Path.cwd(), seconds=seconds, umask=umask)


def answer_of(*words: str, environ: Mapping[str, str], seconds: float = PATIENCE_SECONDS) -> Any:
    """The JSON that a command prints when all is well."""
    done = stationmaster(*words, environ=environ, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def output_of(*words: str, home: Path) -> str:
    """All that a command printed, in the environment of this process and with this home."""
    done = stationmaster(*words, environ={**os.environ, "STATIONMASTER_HOME": str(home)})
    return done.stdout + done.stderr


@cache
def command_server() -> CommandServer:
    """The one server of all processes of this test run, which ends with the last of them."""
    return CommandServer()


class CommandServer:
    """A process that has imported everything; each command is a child of it."""

    def __init__(self) -> None:
        run = os.environ.get(TEST_RUN) or uuid4().hex
        folder = Path(tempfile.gettempdir()) / f"commands-{run}"
        self.address = folder / SOCKET
        self.own_command = str(folder / COMMAND)
        with locked(folder):
            self._hold = self._held() or self._start(folder)  # until this process ends

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

    def _start(self, folder: Path) -> subprocess.Popen[bytes]:
        """A server that stays as long as this process has its standard input open."""
        self.address.unlink(missing_ok=True)
        self.write_command(folder)
        process = subprocess.Popen(
            [*program("commands.server"), str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as said:
            assert said.readline() == b"ready\n", "the server of commands did not start"
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
        self, words: Sequence[str], *, environ: Mapping[str, str], cwd: Path, seconds: float, umask: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        with Path(os.devnull).open() as nothing, _scratch() as out, _scratch() as err:
            streams = [stream.fileno() for stream in (nothing, out, err)]
            address = str(self.address)
            with ForkedCommand(address, words, environ=environ, cwd=str(cwd), streams=streams, umask=umask) as command:
                try:
                    code = command.wait(seconds)
                except TimeoutError:
                    os.kill(command.pid, signal.SIGKILL)
                    said = _read(out)[-500:] + _read(err)[-500:]
                    raise AssertionError(f"{' '.join(words)} takes too long; it said: {said}") from None
            return subprocess.CompletedProcess([*words], code, _read(out), _read(err))

    def write_command(self, folder: Path) -> None:
        """A `stationmaster` in this folder, for a PATH; a child of this server does the work."""
        client = Path(__file__).with_name("client.py")
        command = folder / COMMAND
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {client} {self.address} "$@"\n')
        command.chmod(0o755)


def _scratch() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
