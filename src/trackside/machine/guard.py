"""What home tells the guard of a rented machine: how long it may go on alone, and that all is safe.

The guard is a few lines of shell that run beside us; it reads these files in the folder of all jobs. A machine that
several jobs share has none, and names a folder of each job's own where they do no harm.
"""

from __future__ import annotations

import os
import time

from trackside.records import write_text
from trackside.root import Root

_GUARD_FILE = ".guard"
_ACKNOWLEDGED_FILE = ".acknowledged"


def visit(root: Root, *, alone_seconds: float) -> None:
    """Home was here; a training may go on for so long without another visit."""
    write_text(_beside(root, _GUARD_FILE), "%d %d\n" % (alone_seconds, _uptime()))


def acknowledge(root: Root) -> None:
    """Everything of worth is safe at home: the machine may be destroyed."""
    write_text(_beside(root, _ACKNOWLEDGED_FILE), "")


def _beside(root: Root, name: str) -> str:
    folder = os.environ.get("STATIONMASTER_GUARD_FOLDER") or os.path.dirname(os.path.abspath(root.path))
    return os.path.join(folder, name)


def _uptime() -> float:
    """The clock that the guard reads: seconds since boot, or the wall clock where there is no such file."""
    try:
        with open(os.environ.get("STATIONMASTER_UPTIME", "/proc/uptime"), encoding="ascii") as file:
            return float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()
