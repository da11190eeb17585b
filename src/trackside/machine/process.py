"""Identify a process by pid, start time and boot, so that a reused pid is not mistaken for it."""

from __future__ import annotations

import os
import signal
from typing import Any, Mapping, NamedTuple


class Process(NamedTuple):
    pid: int
    start_time: str
    boot_id: str
    group: int

    def as_record(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_time": self.start_time, "boot_id": self.boot_id, "pgid": self.group}


def identify(pid: int, *, boot_id: str) -> Process | None:
    """Return the process that now has this pid; None when there is none."""
    seen = _look_at(pid)
    if seen is None:
        return None
    return Process(pid=pid, start_time=seen.start_time, boot_id=boot_id, group=os.getpgid(pid))


def process_from_record(record: Mapping[str, Any] | None) -> Process | None:
    try:
        found = Process(
            pid=int(record["pid"]),  # type: ignore[index]
            start_time=str(record["start_time"]),  # type: ignore[index]
            boot_id=str(record["boot_id"]),  # type: ignore[index]
            group=int(record["pgid"]),  # type: ignore[index]
        )
    except (KeyError, TypeError, ValueError):
        return None
    # Signalling group 0 or 1 would reach ourselves or everything.
    return found if found.pid > 1 and found.group > 1 else None


def is_alive(process: Process, *, boot_id: str) -> bool:
    """Return whether exactly that process still runs. A zombie counts as dead."""
    if process.boot_id != boot_id:
        return False
    seen = _look_at(process.pid)
    return seen is not None and seen.start_time == process.start_time and not seen.is_zombie


def signal_group(process: Process, number: int, *, boot_id: str) -> None:
    """Signal the group of a living process; do nothing if it is gone."""
    if is_alive(process, boot_id=boot_id):
        _kill_group(process.group, number)


def signal_process(process: Process, number: int, *, boot_id: str) -> bool:
    """Signal exactly that process and none of its children; False if it is gone."""
    if not is_alive(process, boot_id=boot_id):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def is_group_leader(process: Process) -> bool:
    """Return whether the process's group is its own, so that a signal to the group reaches only what it started."""
    try:
        return os.getpgid(process.pid) == process.pid
    except OSError:
        return False


def parent_of(pid: int) -> int | None:
    """Return the parent's pid; None where it cannot be read."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            line = file.read()
        return int(line[line.rindex(b")") + 2 :].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def descendants_of(pid: int) -> list[int]:
    """Return every process that this one started, and what those started; empty where there is no /proc."""
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    children: dict[int, list[int]] = {}
    for each in pids:
        children.setdefault(parent_of(each) or 0, []).append(each)
    found: list[int] = []
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        if child > 1 and child not in found:
            found.append(child)
            waiting += children.get(child, ())
    return found


def kill_leftovers(process: Process, *, boot_id: str) -> None:
    """Kill what a dead process left in its group (data loaders that still hold GPU memory).

    A pid stays reserved while its group has members, so another process with that pid means that the group is gone.
    """
    if process.boot_id != boot_id:
        return
    seen = _look_at(process.pid)
    if seen is None or seen.start_time == process.start_time:
        _kill_group(process.group, signal.SIGKILL)


class _ProcessState(NamedTuple):
    start_time: str
    is_zombie: bool


def _look_at(pid: int) -> _ProcessState | None:
    return _look_in_proc(pid) if _HAS_PROC else _look_with_ps(pid)


def _look_in_proc(pid: int) -> _ProcessState | None:
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            line = file.read()
    except OSError:
        return None
    # The second field is the command's name in parentheses and may hold anything, parentheses too.
    fields = line[line.rindex(b")") + 2 :].split()
    return _ProcessState(start_time=fields[19].decode(), is_zombie=fields[0] in (b"Z", b"X"))


def _look_with_ps(pid: int) -> _ProcessState | None:
    import subprocess  # slow to import, needed only where there is no /proc

    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    state, _, start_time = answer.stdout.decode("utf-8", "replace").strip().partition(" ")
    return _ProcessState(start_time=start_time.strip(), is_zombie=state.startswith("Z")) if start_time else None


def _kill_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone between the check and the signal; macOS returns EPERM for a group of zombies


_HAS_PROC = os.path.exists("/proc/self/stat")
