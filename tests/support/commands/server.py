"""Runs commands in children of a process that has imported everything already: a command costs its work, not its start.

Run as a program, with the path of a socket to listen on and the command that asks there, with which a command starts
a worker; it ends with its standard input. Each connection is one command: it brings the command's three streams and a
line of JSON with its arguments, environment, folder and so on, and is answered with the command's pid and, in the end,
its exit code.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from typing import Any, NoReturn

import stationmaster
from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.main import main
from stationmaster.remote.pyz import pyz_bytes

_REQUEST_BYTES = 1 << 20
_STREAMS = (0, 1, 2)
#: What commands import only when they come to it, and what takes long.
_WANTED_SOON = (
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
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


def serve(path: str, own_command: str) -> None:
    _import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children that serve a command are not waited for
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(64)
        print("ready", flush=True)
        while door in select.select([door, sys.stdin], [], [])[0]:
            connection, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _attend(connection, own_command)
            connection.close()


def _import_everything() -> None:
    for module in pkgutil.walk_packages(stationmaster.__path__, "stationmaster."):
        if not any(part in module.name for part in (".builtin.", ".migrations.", "__main__")):
            importlib.import_module(module.name)
    for name in _WANTED_SOON:
        importlib.import_module(name)
    loaded_tree()
    pyz_bytes()
    gc.collect()
    gc.freeze()  # what is never collected is never written to, and stays shared with the children


def _attend(connection: socket.socket, own_command: str) -> NoReturn:
    """Start the command, and wait for it in its caller's place."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    line, streams = _received(connection)
    pid = os.fork()
    if pid == 0:
        connection.close()
        _become(json.loads(line), streams, own_command)
    connection.sendall(b"%d\n" % pid)
    for stream in (*streams, *_STREAMS):  # a worker outlives the reader of the server's output
        os.close(stream)
    _, status = os.waitpid(pid, 0)
    try:
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    except BrokenPipeError:
        pass  # the caller left meanwhile
    os._exit(0)


def _received(connection: socket.socket) -> tuple[bytes, list[int]]:
    line, streams, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, len(_STREAMS))
    while not line.endswith(b"\n"):
        line += connection.recv(_REQUEST_BYTES)
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
    serve(sys.argv[1], sys.argv[2])
