"""Answer several verbs in one process: home sends them on standard input, one after the other.

A request is one line of JSON ({"argv", "input", "most"}) and its input; an answer is one line of JSON ({"status",
"stdout", "stderr"}) and its two outputs. Each verb runs in a fork, so that it can fail, hang or be killed alone. The
process ends when its input ends, after a while without a request, and when the archive has been replaced.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import Callable, NoReturn

# What most verbs need, once, before the forks.
import trackside.machine.guard
import trackside.report.outputs
import trackside.report.status
import trackside.report.thinning
import trackside.transfer.hashing  # noqa: F401
from trackside.code_cache import archive_path

_CHUNK_BYTES = 1 << 16
_STDERR_BYTES = 1 << 16

RunVerb = Callable[["list[str]"], int]


def serve(run_verb: RunVerb, root_path: str, *, token: str, idle_seconds: float) -> None:
    """Answer until the input ends. `token` tells home where a login's banner ends and our own output begins."""
    import sqlite3  # noqa: F401 - status needs it as soon as a training reports

    archive = _archive_file()
    requests = _Requests(0)
    _write(1, b"%s\n" % token.encode())
    while True:
        line = requests.line(idle_seconds)
        if line is None or _archive_file() != archive:
            return
        request = json.loads(line)
        given = requests.exactly(request["input"])
        if given is None:
            return
        argv = ["--root", root_path, *request["argv"]]
        done = _run_in_fork(run_verb, argv, given, requests, most_bytes=request["most"])
        if done is None:
            return
        status, stdout, stderr = done
        head = json.dumps({"status": status, "stdout": len(stdout), "stderr": len(stderr)})
        _write(1, head.encode() + b"\n" + stdout + stderr)


class _Requests:
    """Reads lines and blocks of bytes from a descriptor; None at its end."""

    def __init__(self, source: int) -> None:
        self.source = source
        self._read = b""

    def line(self, idle_seconds: float) -> bytes | None:
        while b"\n" not in self._read:
            if not select.select([self.source], [], [], idle_seconds)[0] or not self.more():
                return None
        line, self._read = self._read.split(b"\n", 1)
        return line

    def exactly(self, size: int) -> bytes | None:
        while len(self._read) < size:
            if not self.more():
                return None
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def more(self) -> bool:
        chunk = os.read(self.source, _CHUNK_BYTES)
        self._read += chunk
        return bool(chunk)


def _run_in_fork(
    run_verb: RunVerb, argv: list[str], given: bytes, requests: _Requests, *, most_bytes: int
) -> tuple[int, bytes, bytes] | None:
    """Run a verb; return its exit status as a shell reports it, and what it printed: one byte too many at most.

    None when home is gone. The verb then goes on alone, as one in a process of its own would.
    """
    (their_stdin, stdin), (stdout, their_stdout), (stderr, their_stderr) = os.pipe(), os.pipe(), os.pipe()
    theirs = (their_stdin, their_stdout, their_stderr)
    pid = os.fork()
    if pid == 0:
        _become_verb(run_verb, argv, theirs, ours=(stdin, stdout, stderr))
    for descriptor in theirs:
        os.close(descriptor)
    os.set_blocking(stdin, False)
    printed = {stdout: bytearray(), stderr: bytearray()}
    waiting = select.poll()
    waiting.register(requests.source, select.POLLIN)
    waiting.register(stdin, select.POLLOUT)
    for output in printed:
        waiting.register(output, select.POLLIN)
    reading = set(printed)
    while reading and len(printed[stdout]) <= most_bytes:
        for descriptor, _ in waiting.poll():
            if descriptor == requests.source:
                if not requests.more():
                    return None
                continue
            if descriptor == stdin:
                given = _send_some(stdin, given)
                if not given:
                    waiting.unregister(stdin)
                    os.close(stdin)
                continue
            chunk = os.read(descriptor, _CHUNK_BYTES)
            printed[descriptor] += chunk
            if not chunk:
                waiting.unregister(descriptor)
                reading.discard(descriptor)
    for descriptor in printed:
        os.close(descriptor)
    if reading:
        os.kill(pid, signal.SIGKILL)  # it prints more than home takes
    status = os.waitpid(pid, 0)[1]
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    return code, bytes(printed[stdout][: most_bytes + 1]), bytes(printed[stderr][-_STDERR_BYTES:])


def _send_some(stdin: int, given: bytes) -> bytes:
    """Write what fits and return the rest; none for a verb that does not read its input."""
    try:
        return given[os.write(stdin, given) :] if given else b""
    except BlockingIOError:
        return given
    except BrokenPipeError:
        return b""


def _become_verb(run_verb: RunVerb, argv: list[str], theirs: tuple[int, ...], *, ours: tuple[int, ...]) -> NoReturn:
    status = 1
    try:
        for target, source in enumerate(theirs):
            os.dup2(source, target)
        for descriptor in (*theirs, *ours):
            os.close(descriptor)
        status = run_verb(argv)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - the loop of requests must never go on in this process
        import traceback  # slow to import, needed only here

        traceback.print_exc()
    finally:
        os._exit(status)


def _archive_file() -> tuple[int, int, int] | None:
    """Identify the archive's file; None where trackside is installed as a package, or the archive is gone."""
    path = archive_path()
    if path is None:
        return None
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _write(sink: int, data: bytes) -> None:
    while data:
        data = data[os.write(sink, data) :]
