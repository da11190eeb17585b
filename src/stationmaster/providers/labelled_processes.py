"""The processes of a machine on this computer: those with its label in their environment."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from stationmaster.errors import ProviderFault

MACHINE_VARIABLE = "STATIONMASTER_MACHINE"
_KILL_SECONDS = 10.0
_MOST_CHASES = 2000  # consecutive scans for new processes; each takes about ten microseconds


def processes_of(label: str) -> list[int]:
    """Every live process with the machine's label in its environment, except this one.

    A process group is not enough: trackside and trainers start their own sessions.
    """
    return list(_carriers(label))


def _carriers(label: str) -> Iterator[int]:
    wanted = f"{MACHINE_VARIABLE}={label}".encode()
    for pid, environment in _environments():
        if wanted in environment and pid != os.getpid():
            yield pid


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    if not Path("/proc/self/environ").exists():
        yield from _environments_by_ps()
        return
    newest = _newest_pid()
    entries = os.listdir("/proc")  # noqa: PTH208 (names only; a Path for each would double the cost)
    yield from _environments_of(int(entry) for entry in entries if entry.isdigit())
    # A process that keeps forking and exiting is in no listing: it is found among the newer pids.
    for _ in range(_MOST_CHASES):
        known, newest = newest, _newest_pid()
        if newest <= known:
            return
        yield from _environments_of(range(known + 1, newest + 1))


def _environments_of(pids: Iterable[int]) -> Iterator[tuple[int, list[bytes]]]:
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                yield pid, file.read().split(b"\0")
        except OSError:  # it has ended, or belongs to another user
            continue


def _newest_pid() -> int:
    """The newest pid; 0 if /proc shows only processes, as in some containers."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[-1])
    except OSError:
        return 0


def _environments_by_ps() -> Iterator[tuple[int, list[bytes]]]:
    listed = subprocess.run(["ps", "eww", "-ax", "-o", "pid=,command="], capture_output=True, check=True).stdout
    for line in listed.splitlines():
        pid, _, words = line.strip().partition(b" ")
        yield int(pid), words.split(b" ")


def kill_processes_of(label: str) -> None:
    """Kill until two scans in a row find nothing: a process may fork during a scan.

    Each is killed as soon as it is found, so that it cannot fork again.
    """
    ends = time.monotonic() + _KILL_SECONDS
    quiet_looks = 0
    while quiet_looks < 2:
        quiet_looks += 1
        for pid in _carriers(label):
            quiet_looks = 0
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # already gone
        if time.monotonic() > ends:
            raise ProviderFault(f"processes of {label} do not die: {processes_of(label)}")
        time.sleep(0.01)
