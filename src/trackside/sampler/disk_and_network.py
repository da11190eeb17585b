"""Room on the disk, and how fast disks and network work."""

from __future__ import annotations

import os
from typing import Callable

from trackside.machine.readings import read_disk
from trackside.sampler.procfs import read_or_none
from trackside.sampler.sample import GB, IoReading

_MB = 1e6
_SECTOR = 512  # bytes in diskstats, whatever the disk's own sectors are


class IoMeter:
    """Measures rates between two readings."""

    def __init__(self, folder: str, *, now: Callable[[], float], proc: str = "/proc", sys: str = "/sys") -> None:
        self._folder = folder
        self._now = now
        self._proc = proc
        self._disks = _devices(sys + "/block")
        self._interfaces = _devices(sys + "/class/net")
        self._at: float | None = None
        self._last: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)

    def read(self) -> IoReading:
        """Return the disk's room and the rates since the last reading. Raises OSError if the folder is gone."""
        now = self._now()
        disks = read_or_none(self._proc + "/diskstats")
        network = read_or_none(self._proc + "/net/dev")
        seen = (
            parse_diskstats(disks, self._disks) if disks is not None and self._disks else None,
            parse_network(network, self._interfaces) if network is not None else None,
        )
        seconds = now - self._at if self._at is not None else 0.0
        read, written = _rates(self._last[0], seen[0], seconds)
        received, sent = _rates(self._last[1], seen[1], seconds)
        self._at, self._last = now, seen
        room = read_disk(self._folder)
        return IoReading(room["total_bytes"] / GB, room["free_bytes"] / GB, read, written, received, sent)


def parse_diskstats(text: bytes, disks: set[str]) -> tuple[int, int]:
    """Return the bytes that these disks have read and written.

    >>> text = b"8 0 sda 5 0 10 0 7 0 4 0 0 0 0\\n8 1 sda1 5 0 10 0 7 0 4 0 0 0 0"
    >>> parse_diskstats(text, {"sda"})
    (5120, 2048)
    """
    rows = [fields for fields in map(bytes.split, text.splitlines()) if len(fields) >= 10]
    whole = [fields for fields in rows if fields[2].decode("ascii", "replace") in disks]
    return sum(int(row[5]) for row in whole) * _SECTOR, sum(int(row[9]) for row in whole) * _SECTOR


def parse_network(text: bytes, hardware: set[str]) -> tuple[int, int]:
    """Return the bytes received and sent: by network cards, or, in a container without any, by all but loopback.

    >>> text = b"x\\ny\\n  lo: 9 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0\\neth0: 7 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0\\n"
    >>> parse_network(text, set())
    (7, 3)
    """
    rows = {}
    for line in text.splitlines()[2:]:
        name, _, rest = line.decode("ascii", "replace").rpartition(":")
        fields = rest.split()
        if name.strip() != "lo" and len(fields) >= 9:
            rows[name.strip()] = (int(fields[0]), int(fields[8]))
    # A bridge and the interfaces of containers carry the same bytes again.
    chosen = [row for name, row in rows.items() if name in hardware] or list(rows.values())
    return sum(row[0] for row in chosen), sum(row[1] for row in chosen)


def _devices(folder: str) -> set[str]:
    """Return the entries that belong to hardware: no partitions, loops, volumes or bridges."""
    try:
        return {name for name in os.listdir(folder) if os.path.exists("%s/%s/device" % (folder, name))}
    except OSError:
        return set()


def _rates(
    last: tuple[int, int] | None, seen: tuple[int, int] | None, seconds: float
) -> tuple[float | None, float | None]:
    if last is None or seen is None or seconds <= 0.0 or seen[0] < last[0] or seen[1] < last[1]:
        return None, None  # counters also begin anew
    return (seen[0] - last[0]) / seconds / _MB, (seen[1] - last[1]) / seconds / _MB
