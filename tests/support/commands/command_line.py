"""The `stationmaster` command as a separate process with its own environment, forked from a ready server."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support.commands.client import ForkedCommand
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


@cache
def command_server() -> CommandServer:
    """The one server of this process, which ends with it."""
    server = CommandServer()
    atexit.register(server.close)
    return server


class CommandServer:
    """A process that has imported everything; each command is a child of it."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="commands-"))
        self.address = self._folder / "socket"
        self.write_command(self._folder)
        self.own_command = str(self._folder / "stationmaster")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        self._process = subprocess.Popen(
            [*program("commands.server"), str(self.address), self.own_command], cwd=ROOT, **pipes
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the server of commands did not start"

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE_SECONDS)
        shutil.rmtree(self._folder)

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
        command = folder / "stationmaster"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {client} {self.address} "$@"\n')
        command.chmod(0o755)


def _scratch() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
