"""End processes that still write to a file before a transfer resumes it."""

from __future__ import annotations

import os
import signal
import time
from typing import Iterator

_PATIENCE_SECONDS = 1.0  # rsync itself would wait ten seconds for its peer
_LOOK_SECONDS = 0.02


def end_writers(path: str, *, name: str = "rsync", patience_seconds: float = _PATIENCE_SECONDS) -> int:
    """End every process called `name` that has the file open; return how many.

    The old receiver does not notice that its connection went silent, and would write out what it holds when it ends
    much later. Only Linux shows which processes have a file open; elsewhere none is found.
    """
    asked: set[int] = set()
    kill_at = time.monotonic() + patience_seconds
    while True:
        found = list(_holders(os.path.realpath(path), name))
        now = time.monotonic()
        # One that survives KILL hangs in the kernel: it writes nothing any more.
        if not found or now > kill_at + patience_seconds:
            return len(asked)
        for pid in found:
            if pid not in asked or now >= kill_at:
                _signal(pid, signal.SIGTERM if now < kill_at else signal.SIGKILL)
        asked.update(found)
        time.sleep(_LOOK_SECONDS)


def _holders(path: str, name: str) -> Iterator[int]:
    try:
        entries = os.listdir("/proc")
    except OSError:
        return
    for entry in entries:
        if entry.isdigit() and _is_called(entry, name) and _has_open(entry, path):
            yield int(entry)


def _is_called(pid: str, name: str) -> bool:
    try:
        with open("/proc/%s/comm" % pid) as file:
            return file.read().strip() == name
    except OSError:
        return False


def _has_open(pid: str, path: str) -> bool:
    folder = "/proc/%s/fd" % pid
    try:
        return any(_target(os.path.join(folder, number)) == path for number in os.listdir(folder))
    except OSError:  # it has ended, or belongs to another user
        return False


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has just ended
