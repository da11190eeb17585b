"""Moments on this machine: wall clock, seconds since boot, and which boot."""

from __future__ import annotations

import os
import time
from typing import Any, Mapping, NamedTuple

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


class Moment(NamedTuple):
    """A point in time. `monotonic` counts suspended time where the kernel can, and compares within one boot only."""

    wall: float
    monotonic: float
    boot_id: str

    def as_record(self) -> dict[str, Any]:
        return {"wall": self.wall, "monotonic": self.monotonic, "boot_id": self.boot_id}


def now() -> Moment:
    return Moment(wall=time.time(), monotonic=seconds_since_boot(), boot_id=boot_id())


def moment_from_record(record: Mapping[str, Any] | None) -> Moment | None:
    """The moment a record tells of; None when it tells of none."""
    try:
        return Moment(wall=float(record["wall"]), monotonic=float(record["monotonic"]), boot_id=str(record["boot_id"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None


def seconds_between(earlier: Moment, later: Moment) -> float | None:
    """Seconds from one moment to the other; None across a reboot, where nobody knows."""
    elapsed = later.monotonic - earlier.monotonic
    return elapsed if earlier.boot_id == later.boot_id and elapsed >= 0 else None


def is_before(first: Moment, second: Moment) -> bool:
    if first.boot_id == second.boot_id:
        return first.monotonic < second.monotonic
    return first.wall < second.wall


def seconds_since_boot() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def boot_id() -> str:
    """Which boot of the machine this is; empty where the system does not say (TRACKSIDE_BOOT_ID overrides)."""
    given = os.environ.get("TRACKSIDE_BOOT_ID")
    return given if given else _boot_id_of_kernel()


def _boot_id_of_kernel() -> str:
    global _known_boot_id
    if _known_boot_id is None:
        try:
            with open(_BOOT_ID_FILE, encoding="ascii") as file:
                _known_boot_id = file.read().strip()
        except OSError:
            _known_boot_id = ""
    return _known_boot_id


_known_boot_id: str | None = None
