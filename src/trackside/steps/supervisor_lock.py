"""The lock that allows one supervisor at a time; its file holds that supervisor's process."""

from __future__ import annotations

import json
import os
import time

from trackside.errors import TracksideError
from trackside.machine import clock, locks
from trackside.machine.process import identify, is_alive, process_from_record
from trackside.records import read_record
from trackside.root import Root

_POLL_SECONDS = 0.01
_LIMIT_SECONDS = 2.0


def is_supervised(root: Root) -> bool:
    """Return whether a supervisor is alive or starting."""
    return locks.is_locked(root.supervisor_lock)


def supervisor_pid(root: Root) -> int | None:
    """Return the last supervisor's pid; None if there never was one."""
    found = process_from_record(read_record(root.supervisor_lock))
    return found.pid if found else None


def take_supervisor_lock(root: Root) -> int | None:
    """Take the lock for a new supervisor and return its descriptor; None if one is alive."""
    lock = os.open(root.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = clock.seconds_since_boot() + _LIMIT_SECONDS
    while not locks.try_lock(lock):
        holder = process_from_record(read_record(root.supervisor_lock))
        is_held = holder is not None and is_alive(holder, boot_id=clock.boot_id())
        if is_held or clock.seconds_since_boot() > deadline:
            os.close(lock)
            if is_held:
                return None
            raise TracksideError("a process that is not a supervisor holds %s" % root.supervisor_lock)
        # Another process checks for a supervisor at this instant, or is starting one.
        time.sleep(_POLL_SECONDS)
    return lock


def sign_lock(lock: int) -> None:
    """Write this process into a lock file; in place, because a renamed file would be another lock."""
    myself = identify(os.getpid(), boot_id=clock.boot_id())
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(myself.as_record() if myself else {}).encode(), 0)
