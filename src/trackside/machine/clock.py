"""Points in time on this machine: wall clock, seconds since boot, and which boot."""

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
    """Return the moment in a record; None when it holds none."""
    try:
        return Moment(wall=float(record["wall"]), monotonic=float(record["monotonic"]), boot_id=str(record["boot_id"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None


def seconds_between(earlier: Moment, later: Moment) -> float | None:
    """Return the seconds between two moments; None across a reboot, where they are unknown."""
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
    """Return an id of the machine's current boot; empty where the system has none (TRACKSIDE_BOOT_ID overrides)."""
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
