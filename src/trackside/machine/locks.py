"""File locks that live exactly as long as the processes holding them."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import Iterator


def try_lock(descriptor: int) -> bool:
    """Take the lock on an open file for as long as any copy of the descriptor is open; False if somebody has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Wait until nobody else is between the two ends of such a block on this folder."""
    # A file, opened for writing: network file systems lock nothing else.
    descriptor = os.open(os.path.join(folder, ".turn"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: str) -> bool:
    """Whether some process holds the lock. Askers share it for an instant, so they never disturb each other."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
