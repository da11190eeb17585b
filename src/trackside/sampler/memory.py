"""The machine's memory, on Linux."""

from __future__ import annotations

from trackside.machine.readings import meminfo_bytes
from trackside.sampler.sample import GB, MemoryReading


def read_memory(proc: str = "/proc") -> MemoryReading:
    """Return total, used, available memory and used swap. Raises OSError where there is no meminfo."""
    with open(proc + "/meminfo", encoding="ascii", errors="replace") as file:
        return parse_memory(file.read())


def parse_memory(text: str) -> MemoryReading:
    """
    >>> parse_memory("MemTotal: 8388608 kB\\nMemFree: 1048576 kB\\nMemAvailable: 4194304 kB\\n")
    MemoryReading(total_gb=8.0, used_gb=7.0, available_gb=4.0, swap_used_gb=0.0)
    """
    found = meminfo_bytes(text)
    if "MemTotal" not in found or "MemFree" not in found:
        raise ValueError("no total or no free memory in meminfo")
    total, free = found["MemTotal"], found["MemFree"]
    swap = found.get("SwapTotal", 0) - found.get("SwapFree", 0)
    return MemoryReading(
        total_gb=total / GB,
        used_gb=(total - free) / GB,
        available_gb=found.get("MemAvailable", free) / GB,
        swap_used_gb=swap / GB,
    )
