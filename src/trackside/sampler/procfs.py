"""Small files of /proc and of control groups, read with few system calls."""

from __future__ import annotations

import os

_LONGEST = 1 << 16  # one read returns a whole file of this kind


def read_bytes(path: str) -> bytes:
    """Return the file's content. Raises OSError, also for a process that has just ended."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = chunk = os.read(file, _LONGEST)
        while len(chunk) == _LONGEST:
            chunk = os.read(file, _LONGEST)
            content += chunk
        return content
    finally:
        os.close(file)


def read_or_none(path: str) -> bytes | None:
    """Return the file's content; None if it cannot be read."""
    try:
        return read_bytes(path)
    except OSError:
        return None
