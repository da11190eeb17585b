"""Runs commands in children of a process that has imported everything already: a command costs its work, not its start.

Run as a program, with the folder of its socket; it ends, and removes the folder, when its standard input and all
connections that hold it are closed. A connection that says `hold` is answered with `ready`. Any other is one command:
it brings the command's three streams and a line of JSON with its arguments, environment, folder and so on, and is
answered with the command's pid and, in the end, its exit code. A command whose caller is gone is killed.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel

import stationmaster
from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.main import main
from stationmaster.remote.pyz import pyz_bytes
from tests.support.commands.server_folder import COMMAND, HOLD, SOCKET, locked

_REQUEST_BYTES = 1 << 20
_STREAMS = (0, 1, 2)
#: What commands import only when they come to it, and what takes long.
_WANTED_SOON = (
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
    "alembic.command",
    "alembic.config",
    "anyio._backends._asyncio",
    "boto3",
    "certifi",
    "httpcore",
    "huggingface_hub",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "typer._adapters",
    "typer._click.decorators",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


def serve(folder: Path) -> None:
    _import_everything()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / SOCKET))
        door.listen(64)
        print("ready", flush=True)
        forker = Forker(door, str(folder / COMMAND))
        while True:
            forker.run()
            with locked(folder):
                if not forker.is_asked():
                    shutil.rmtree(folder)
                    return


class Forker:
    """Forks the commands, waits for them, and tells each caller how theirs ended."""

    def __init__(self, door: socket.socket, own_command: str) -> None:
        self._door = door
        self._own_command = own_command
        self._holders: list[Any] = [os.fdopen(os.dup(0))]  # not sys.stdin, which becomes the command's
        self._callers: dict[int, socket.socket] = {}  # by the pid of the command
        self._wakeup = os.pipe()
        for pipe in self._wakeup:
            os.set_blocking(pipe, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup[1])

    def is_asked(self) -> bool:
        """Whether somebody is at the door."""
        return bool(select.select([self._door], [], [], 0)[0])

    def run(self) -> None:
        """As long as the server is held, or a command runs, or somebody asks."""
        while self._holders or self._callers or self.is_asked():
            waited_for = [self._door, self._wakeup[0], *self._holders, *self._callers.values()]
            ready = select.select(waited_for, [], [])[0]
            if self._wakeup[0] in ready:
                os.read(self._wakeup[0], 4096)
                self._report_ends()
            for pid, caller in [*self._callers.items()]:
                if caller in ready:  # callers have nothing to say: this one is gone
                    os.kill(pid, signal.SIGKILL)
                    del self._callers[pid]
                    caller.close()
            self._holders = [holder for holder in self._holders if holder not in ready]
            if self._door in ready:
                self._admit(self._door.accept()[0])

    def _admit(self, connection: socket.socket) -> None:
        line, streams = _received(connection)
        if not line:
            connection.close()
            return
        if line == HOLD:
            self._holders.append(connection)
            connection.sendall(b"ready\n")
            return
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for pipe in self._wakeup:
                os.close(pipe)
            for inherited in (self._door, connection, *self._holders, *self._callers.values()):
                inherited.close()
            _become(json.loads(line), streams, self._own_command)
        for stream in streams:
            os.close(stream)
        self._callers[pid] = connection
        _tell(connection, pid)

    def _report_ends(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (caller := self._callers.pop(pid, None)) is not None:
                _tell(caller, os.waitstatus_to_exitcode(status))
                caller.close()


def _import_everything() -> None:
    for module in pkgutil.walk_packages(stationmaster.__path__, "stationmaster."):
        if not any(part in module.name for part in (".builtin.", ".migrations.", "__main__")):
            importlib.import_module(module.name)
    for name in _WANTED_SOON:
        importlib.import_module(name)
    _build_deferred_models()
    loaded_tree()
    pyz_bytes()
    gc.collect()
    gc.freeze()  # what is never collected is never written to, and stays shared with the children


def _build_deferred_models() -> None:
    """Settings build their validators when they are first read, which takes longer than the rest of most commands."""
    kinds = [BaseModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.partition(".")[0] == "stationmaster":
            kind.model_rebuild()


def _tell(caller: socket.socket, number: int) -> None:
    try:
        caller.sendall(b"%d\n" % number)
    except ConnectionError:
        pass  # the caller left meanwhile


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    """What the caller wants; nothing if it left before it had said so."""
    line, streams, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, len(_STREAMS))
    while line and not line.endswith(b"\n"):
        more = connection.recv(_REQUEST_BYTES)
        line = line + more if more else b""
    return line, streams


def _become(request: dict[str, Any], streams: list[int], own_command: str) -> NoReturn:
    """The command itself, as if it had just been started."""
    for stream, number in zip(streams, _STREAMS, strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    if request["umask"] is not None:
        os.umask(request["umask"])
    if request["leads_session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["stationmaster", *request["arguments"]]
    sys.modules["__main__"].__package__ = None  # a script that was installed, which hints are to name
    code: Any = 0
    try:
        main(own_command=[own_command])
    except SystemExit as leaving:
        code = leaving.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
