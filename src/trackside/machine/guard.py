"""Files that home leaves for the guard of a rented machine: how long it may run alone, and that all results are safe.

The guard is a shell script on the machine; it reads these files in the folder that holds all jobs. A machine that
several jobs share has no guard, and its environment names a folder for each job where these files do no harm.
"""

from __future__ import annotations

import os
import time

from trackside.records import overwrite_text, write_text
from trackside.root import Root

_GUARD_FILE = ".guard"
_ACKNOWLEDGED_FILE = ".acknowledged"


def visit(root: Root, *, alone_seconds: float) -> None:
    """Record a visit: a training may run for `alone_seconds` without another one.

    Raises OSError where nothing can be written: then the guard counts from the visit before.
    """
    path, text = _beside(root, _GUARD_FILE), "%d %d\n" % (alone_seconds, _uptime())
    try:
        write_text(path, text)
    except OSError as problem:
        try:
            overwrite_text(path, text)  # on a full disk there is still room in the old file
        except OSError:
            raise problem from None


def acknowledge(root: Root) -> None:
    """Record that all results are safe at home: the machine may be destroyed."""
    write_text(_beside(root, _ACKNOWLEDGED_FILE), "")


def _beside(root: Root, name: str) -> str:
    folder = os.environ.get("STATIONMASTER_GUARD_FOLDER") or os.path.dirname(os.path.abspath(root.path))
    return os.path.join(folder, name)


def _uptime() -> float:
    """Read the guard's clock: seconds since boot, or the wall clock where that file is missing."""
    try:
        with open(os.environ.get("STATIONMASTER_UPTIME", "/proc/uptime"), encoding="ascii") as file:
            return float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return time.time()
