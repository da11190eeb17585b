"""Asks another program for its output, with a limit on time."""

from __future__ import annotations

import os
import select
import signal
import time

_DYING_MILLISECONDS = 100


class Query:
    """Runs one program at a time. One that hangs is killed; the next is started only when it is really gone."""

    def __init__(self, program: str, *, limit_seconds: float = 2.0) -> None:
        self.program = program
        self._limit_seconds = limit_seconds
        self._killed = 0
        self.hung = False  # whether the last one had to be killed
        self.cpu_seconds = 0.0  # of the last one

    def ask(self, *arguments: str) -> str | None:
        """Return what the program prints; None if it fails, hangs or cannot be started."""
        if self._killed and self._reap(self._killed) is None:
            return None
        self._killed, self.hung = 0, False
        output, written = os.pipe()
        try:
            pid = self._start(arguments, written)
        except OSError:
            os.close(output)
            return None
        finally:
            os.close(written)
        ends = time.monotonic() + self._limit_seconds
        try:
            answer = _read_all(output, ends)
        finally:
            os.close(output)
        status = self._reap(pid)
        while answer is not None and status is None and time.monotonic() < ends:
            time.sleep(0.001)
            status = self._reap(pid)
        if status is None:
            self.hung = True
            self._kill(pid)
        return answer.decode("utf-8", "replace") if answer is not None and status == 0 else None

    def _start(self, arguments: tuple[str, ...], written: int) -> int:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, written, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        argv = (self.program, *arguments)
        return os.posix_spawn(self.program, argv, os.environ, file_actions=actions, setpgroup=0)

    def _kill(self, pid: int) -> None:
        try:
            os.killpg(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        for _ in range(_DYING_MILLISECONDS):
            if self._reap(pid) is not None:
                return
            time.sleep(0.001)
        self._killed = pid  # it hangs in the kernel

    def _reap(self, pid: int) -> int | None:
        """Return the exit status; None while the process is still there."""
        try:
            found, status, usage = os.wait4(pid, os.WNOHANG)
        except ChildProcessError:
            return 0  # a process that ignores the end of its children never learns how they ended
        if not found:
            return None
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return status


def _read_all(output: int, ends: float) -> bytes | None:
    """Return everything until the output is closed; None if that takes too long."""
    waiting, answer = select.poll(), b""
    waiting.register(output, select.POLLIN)
    while waiting.poll(max(0.0, ends - time.monotonic()) * 1000.0):
        chunk = os.read(output, 1 << 16)
        if not chunk:
            return answer
        answer += chunk
    return None
