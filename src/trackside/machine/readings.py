"""Memory and disk of this machine."""

from __future__ import annotations

import os
from typing import Any


def read_memory() -> dict[str, int] | None:
    """Return main memory in bytes; None where the system has no /proc/meminfo."""
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as file:
            return parse_meminfo(file.read())
    except OSError:
        return None


def parse_meminfo(text: str) -> dict[str, int] | None:
    """
    >>> parse_meminfo("MemTotal: 8 kB\\nMemAvailable: 4 kB\\nSwapTotal: 2 kB\\nSwapFree: 1 kB\\n")["swap_used_bytes"]
    1024
    """
    found = meminfo_bytes(text)
    if "MemTotal" not in found:
        return None
    return {
        "total_bytes": found["MemTotal"],
        "available_bytes": found.get("MemAvailable", found.get("MemFree", 0)),
        "swap_used_bytes": found.get("SwapTotal", 0) - found.get("SwapFree", 0),
    }


def meminfo_bytes(text: str) -> dict[str, int]:
    """Return each figure of /proc/meminfo in bytes."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        value = rest.split()
        if value and value[0].isdigit():
            found[name] = int(value[0]) * 1024
    return found


def read_disk(path: str) -> dict[str, Any]:
    """Return the size of the disk that holds `path`, and how much an ordinary user can still write."""
    seen = os.statvfs(path)
    return {"total_bytes": seen.f_blocks * seen.f_frsize, "free_bytes": seen.f_bavail * seen.f_frsize}
