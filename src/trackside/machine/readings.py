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
    kibibytes = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        value = rest.split()
        if value and value[0].isdigit():
            kibibytes[name] = int(value[0])
    if "MemTotal" not in kibibytes:
        return None
    return {
        "total_bytes": kibibytes["MemTotal"] * 1024,
        "available_bytes": kibibytes.get("MemAvailable", kibibytes.get("MemFree", 0)) * 1024,
        "swap_used_bytes": (kibibytes.get("SwapTotal", 0) - kibibytes.get("SwapFree", 0)) * 1024,
    }


def read_disk(path: str) -> dict[str, Any]:
    """Return the size of the disk that holds `path`, and how much an ordinary user can still write."""
    seen = os.statvfs(path)
    return {"total_bytes": seen.f_blocks * seen.f_frsize, "free_bytes": seen.f_bavail * seen.f_frsize}
