"""A machine's processes, known by a mark in their environment: no other process of this computer carries it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

MARK = "STATIONMASTER_MACHINE"
_PROC = Path("/proc")
_CALM_PASSES = 2


def find_marked(marker: str) -> list[int]:
    """The living processes whose environment carries this mark; ended ones that nobody reaped are not living."""
    if _PROC.is_dir():
        return [pid for pid in _all_pids() if _carries(pid, f"{MARK}={marker}".encode())]
    return _find_marked_by_ps(marker)


async def end_marked(marker: str) -> None:
    """No process with this mark is left; one may fork while it is being ended, so look until none is found twice."""
    calm = 0
    while calm < _CALM_PASSES:
        found = await asyncio.to_thread(find_marked, marker)
        for pid in found:
            _end(pid, marker)
        calm = 0 if found else calm + 1
        if found:
            await asyncio.sleep(0.01)


def _end(pid: int, marker: str) -> None:
    try:
        if not _PROC.is_dir():
            os.kill(pid, signal.SIGKILL)
            return
        handle = os.pidfd_open(pid)
        try:
            # Asked again through the handle's eyes: the number may have gone to somebody else since the search.
            if _carries(pid, f"{MARK}={marker}".encode()):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except ProcessLookupError:
        pass  # it ended by itself meanwhile


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.glob("[0-9]*")]


def _carries(pid: int, entry: bytes) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False  # ended, or another user's: not ours
    return entry in environment.split(b"\0")


def _find_marked_by_ps(marker: str) -> list[int]:
    import subprocess  # only where there is no /proc

    listing = subprocess.run(["ps", "axEww", "-o", "pid=,command="], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in listing.stdout.splitlines() if f"{MARK}={marker}" in line.split()]
