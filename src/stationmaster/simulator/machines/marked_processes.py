"""A machine's processes, known by a mark in their environment: no other process of this computer carries it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

MARK = "STATIONMASTER_MACHINE"
_PROC = Path("/proc")
_CALM_PASSES = 2
_LOOKS = 4
_LOOK_SECONDS = 0.01


def find_marked(marker: str) -> list[int]:
    """The living processes whose environment carries this mark; ended ones that nobody reaped are not living."""
    if not _PROC.is_dir():
        return _find_marked_by_ps(marker)
    found: list[int] = []
    unread = [int(entry.name) for entry in _PROC.glob("[0-9]*")]
    for _ in range(_LOOKS):
        carrying = {pid: _carries(pid, marker) for pid in unread}
        found += [pid for pid, carries in carrying.items() if carries]
        unread = [pid for pid, carries in carrying.items() if carries is None]
        if not unread:
            break
        time.sleep(_LOOK_SECONDS)
    return found


async def end_marked(marker: str) -> None:
    """No process with this mark is left; one may fork while it is being ended, so look until none is found twice."""
    calm = 0
    while calm < _CALM_PASSES:
        found = await asyncio.to_thread(find_marked, marker)
        for pid in found:
            _end(pid, marker)
        calm = 0 if found else calm + 1
        await asyncio.sleep(_LOOK_SECONDS)


def _end(pid: int, marker: str) -> None:
    try:
        if not _PROC.is_dir():
            os.kill(pid, signal.SIGKILL)
            return
        handle = os.pidfd_open(pid)
        try:
            # Asked again through the handle's eyes: the number may have gone to somebody else since the search.
            if _carries(pid, marker):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile


def _carries(pid: int, marker: str) -> bool | None:
    """Whether the process has the mark; None when it cannot be read just now, because a program is being loaded."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
        if environment:
            return f"{MARK}={marker}".encode() in environment.split(b"\0")
        # The kernel's own threads and ended processes have no memory, and never will have an environment.
        has_memory = not (_PROC / str(pid) / "statm").read_bytes().startswith(b"0 ")
        return None if has_memory else False
    except OSError:
        return False  # ended, or another user's: not ours


def _find_marked_by_ps(marker: str) -> list[int]:
    import subprocess  # only where there is no /proc

    listing = subprocess.run(["ps", "axEww", "-o", "pid=,command="], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in listing.stdout.splitlines() if f"{MARK}={marker}" in line.split()]
