"""File locks that last exactly as long as the processes that hold them."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator


def try_lock(descriptor: int) -> bool:
    """Lock an open file until every copy of the descriptor is closed; False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Let one process at a time run such a block on this folder; the others wait."""
    try:
        # A file, opened for writing: network file systems lock nothing else.
        descriptor = os.open(os.path.join(folder, ".turn"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        descriptor = os.open(folder, os.O_RDONLY)  # no file can be created: lock the folder itself
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: str) -> bool:
    """Whether a process holds the lock. It takes a shared lock for an instant, so callers never block each other."""
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
