"""Forks commands from a process that has imported everything already: a command costs its work, not its start.

The server ends, and removes its folder, when its standard input and all connections that hold it are closed. A
connection that says `hold` is answered with `ready`. Any other is one command: it brings the command's three streams
and a line that is a dictionary in Python, with its arguments, environment, folder and so on. It is answered with the
command's pid and, in the end, its exit code. A command whose caller is gone is killed.
"""

from __future__ import annotations

import ast
import gc
import os
import select
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from tests.support.commands.server_folder import HOLD, SOCKET, locked

RunCommand: TypeAlias = Callable[[list[str]], Any]
"""Runs a command with these arguments, as its program does, and returns its exit code."""

_REQUEST_BYTES = 1 << 20
_STREAMS = (0, 1, 2)


def serve(folder: Path, run_command: RunCommand) -> None:
    """Fork a command for everybody who asks; call it when everything is imported."""
    gc.collect()
    gc.freeze()  # what is never collected is never written to, and stays shared with the children
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(folder / SOCKET))
        door.listen(64)
        print("ready", flush=True)
        forker = Forker(door, run_command)
        while True:
            forker.run()
            with locked(folder):
                if not forker.is_asked():
                    shutil.rmtree(folder)
                    return


class Forker:
    """Forks the commands, waits for them, and tells each caller how theirs ended."""

    def __init__(self, door: socket.socket, run_command: RunCommand) -> None:
        self._door = door
        self._run_command = run_command
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
            _become(ast.literal_eval(line.decode()), streams, self._run_command)
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


def _become(request: dict[str, Any], streams: list[int], run_command: RunCommand) -> NoReturn:
    """The command itself, as if it had just been started."""
    code: Any = 1
    try:
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
        code = run_command(request["arguments"]) or 0
    except SystemExit as leaving:
        code = leaving.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
