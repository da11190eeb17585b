"""Who still writes to a file that somebody else is about to go on with."""

from __future__ import annotations

import os
import signal
import time
from typing import Iterator

_PATIENCE_SECONDS = 1.0  # rsync itself waits ten for a farewell that nobody will hear
_LOOK_SECONDS = 0.02


def end_writers(path: str, *, name: str = "rsync", patience_seconds: float = _PATIENCE_SECONDS) -> int:
    """No process called `name` has the file open any more; how many had to be ended.

    After a connection that went silent the old receiver knows nothing of it, and would write out what it holds when
    it is ended much later. Only Linux shows who has a file open; elsewhere nobody is found.
    """
    asked: set[int] = set()
    kill_at = time.monotonic() + patience_seconds
    while True:
        found = list(_holders(os.path.realpath(path), name))
        now = time.monotonic()
        # One that outlives being killed hangs in the kernel: it writes nothing any more.
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
    except OSError:  # ended meanwhile, or somebody else's
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
        pass  # ended a moment ago
