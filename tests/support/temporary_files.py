"""Where the tests' temporary files go: thousands of homes and machines are made and removed, faster in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 6 * 2**30  # several times what a whole run has at the same time


def folder_in_memory(environ: Mapping[str, str], folder: Path = _MEMORY) -> Path | None:
    """The folder, if it has room and programs may run from it; None if it is not such a one, or another is named."""
    if "TMPDIR" in environ or not os.access(folder, os.W_OK | os.X_OK):
        return None
    there = os.statvfs(folder)
    has_room = min(there.f_bavail * there.f_frsize, _available_bytes()) >= _ROOM_BYTES
    return folder if has_room and not there.f_flag & os.ST_NOEXEC else None


def _available_bytes() -> int:
    """Memory that programs may still take; 0 where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
