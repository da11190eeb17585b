"""Finds and kills a machine's processes by a unique marker in their environment."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

MARK = "STATIONMASTER_MACHINE"
_PROC = Path("/proc")
_QUIET_SCANS = 2
_SCANS = 4
_SCAN_SECONDS = 0.01


def find_marked(marker: str) -> list[int]:
    """Live processes with this marker in their environment; zombies do not count."""
    if not _PROC.is_dir():
        return _find_marked_by_ps(marker)
    found: list[int] = []
    unread = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 (names only)
    for _ in range(_SCANS):
        carrying = {pid: _carries(pid, marker) for pid in unread}
        found += [pid for pid, carries in carrying.items() if carries]
        unread = [pid for pid, carries in carrying.items() if carries is None]
        if not unread:
            break
        time.sleep(_SCAN_SECONDS)
    return found


async def end_marked(marker: str) -> None:
    """Kill all processes with this marker; scans until two scans find none, because a process may fork meanwhile."""
    quiet = 0
    while quiet < _QUIET_SCANS:
        found = await asyncio.to_thread(find_marked, marker)
        for pid in found:
            _end(pid, marker)
        quiet = 0 if found else quiet + 1
        await asyncio.sleep(_SCAN_SECONDS)


def _end(pid: int, marker: str) -> None:
    try:
        if not _PROC.is_dir():
            os.kill(pid, signal.SIGKILL)
            return
        handle = os.pidfd_open(pid)
        try:
            # Checked again with the handle: the pid may have been reused since the scan.
            if _carries(pid, marker):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except ProcessLookupError:
        pass  # it has exited meanwhile


def _carries(pid: int, marker: str) -> bool | None:
    """Whether the process has the marker; None if it is unreadable at the moment, during an exec."""
    mark = f"{MARK}={marker}".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 (a Path takes longer than the rest)
            environment = file.read()
        if environment:
            return mark in environment and mark in environment.split(b"\0")
        # Kernel threads and ended processes have no memory and never get an environment.
        has_memory = not (_PROC / str(pid) / "statm").read_bytes().startswith(b"0 ")
        return None if has_memory else False
    except OSError:
        return False  # ended, or another user's


def _find_marked_by_ps(marker: str) -> list[int]:
    import subprocess  # only where there is no /proc

    listing = subprocess.run(["ps", "axEww", "-o", "pid=,command="], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in listing.stdout.splitlines() if f"{MARK}={marker}" in line.split()]
