"""The `stationmaster` command: a process of its own with an environment of its own, forked from a ready server."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support.programs import ROOT, program

PATIENCE_SECONDS = 150.0


def stationmaster(
    *words: str, environ: Mapping[str, str], cwd: Path | None = None, seconds: float = PATIENCE_SECONDS
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; its standard input is empty, so that no question can be answered."""
    return command_server().run(words, environ=environ, cwd=cwd or Path.cwd(), seconds=seconds)


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
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
        self._process = subprocess.Popen([*program("commands.server"), str(self.address)], cwd=ROOT, **pipes)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the server of commands did not start"

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE_SECONDS)
        shutil.rmtree(self._folder)

    def run(
        self, words: Sequence[str], *, environ: Mapping[str, str], cwd: Path, seconds: float
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            with Path(os.devnull).open() as nothing:
                command = self._start(words, environ, cwd, (nothing, out, err))
            with command:
                code = command.wait(seconds)
            out.seek(0)
            err.seek(0)
            done = subprocess.CompletedProcess([*words], code or 0, out.read(), err.read())
        if code is None:
            raise AssertionError(
                f"{' '.join(words)} takes too long; it said: {done.stdout[-500:]} {done.stderr[-500:]}"
            )
        return done

    def _start(
        self, words: Sequence[str], environ: Mapping[str, str], cwd: Path, streams: Sequence[IO[str]]
    ) -> _ForkedCommand:
        request = {"arguments": [*words], "environ": dict(environ), "cwd": str(cwd)}
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.address))
        line = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(connection, [line], [stream.fileno() for stream in streams])
        connection.sendall(line[sent:])
        return _ForkedCommand(connection)


class _ForkedCommand:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile()

    def __enter__(self) -> _ForkedCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._connection.close()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None, and its end, if it takes longer than this."""
        pid = int(self._answers.readline())
        self._connection.settimeout(seconds)
        try:
            return int(self._answers.readline())
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            return None
