"""What the threads of a process wait for: whether all of them sleep."""

from __future__ import annotations

import os

from trackside.sampler.procfs import read_or_none

ASLEEP, RUNNING, DISK, STOPPED = "asleep", "running", "disk", "stopped"

# The kernel's letters. Threads of a remote file system's client may wait as "idle" ones.
_STATES = {b"S": ASLEEP, b"R": RUNNING, b"D": DISK, b"I": DISK, b"T": STOPPED, b"t": STOPPED}
_ENDED = (b"Z", b"X")
_STRONGEST_FIRST = (DISK, STOPPED, RUNNING, ASLEEP)
# What waits for a file system in user space, and what a paused container's threads wait in, both look asleep.
_WAITS_FOR_FILES = (b"fuse", b"request_wait_answer", b"nfs", b"rpc_wait", b"cifs", b"ceph", b"ptlrpc", b"p9_client")
_FROZEN = b"freez"


def state_of(pid: int, *, proc: str = "/proc") -> str | None:
    """Return `asleep` only if all threads sleep; None if one of them cannot be read.

    Otherwise `disk` (one waits for a file system), `stopped` (by a signal, a debugger or a paused container) or
    `running`, in this order.
    """
    folder = "%s/%d/task" % (proc, pid)
    try:
        threads = os.listdir(folder)
    except OSError:
        return None
    found = set()
    for thread in threads:
        line = read_or_none("%s/%s/stat" % (folder, thread))
        if line is None:
            return None
        letter = line[line.rindex(b")") + 2 :][:1]
        if letter in _ENDED:
            continue
        state = _STATES.get(letter)
        if state is None:
            return None
        found.add(_looked_at_closely("%s/%s" % (folder, thread)) if state == ASLEEP else state)
    return next((state for state in _STRONGEST_FIRST if state in found), None)


def _looked_at_closely(folder: str) -> str:
    """Return what a thread that looks asleep waits for, by the function of the kernel that it is in."""
    waits_in = read_or_none(folder + "/wchan") or b""
    if _FROZEN in waits_in:
        return STOPPED
    return DISK if any(word in waits_in for word in _WAITS_FOR_FILES) else ASLEEP
