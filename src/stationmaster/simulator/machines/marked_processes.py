"""A machine's processes: those that the simulator starts, and all others, by a unique marker in their environment."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

MARK = "STATIONMASTER_MACHINE"
_PROC = Path("/proc")
_QUIET_SCANS = 2
_SCANS = 4
_SCAN_SECONDS = 0.01


class MarkedProcesses:
    """The processes of one machine."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._starting = 0
        self._started: dict[asyncio.subprocess.Process, asyncio.Task[int]] = {}  # those that have not ended yet

    async def start(self, *command: str, **options: Any) -> asyncio.subprocess.Process:
        """Start a process, whose environment has the marker; `options` are those of `create_subprocess_exec`."""
        self._starting += 1
        try:
            process = await asyncio.create_subprocess_exec(*command, **options)
        finally:
            self._starting -= 1
        self._started[process] = waiting = asyncio.create_task(process.wait())
        waiting.add_done_callback(lambda _: self._started.pop(process))
        return process

    async def end_all(self) -> None:
        """Kill them all. Those that were started here have ended for asyncio, too: it learns of an end by its loop,
        which may end next, and a process that is being started meanwhile would outlive its machine.
        """
        await end_marked(self._marker)
        while self._starting or self._started:
            for process in self._started:
                with suppress(ProcessLookupError):  # not by asyncio, which would reap it twice
                    os.kill(process.pid, signal.SIGKILL)
            await asyncio.sleep(_SCAN_SECONDS)
            if not self._started:
                await end_marked(self._marker)

    async def find(self) -> list[int]:
        """Those that are alive."""
        return await asyncio.to_thread(find_marked, self._marker)


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
