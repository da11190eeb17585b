"""When a log had which length: about one mark a second, so that home can date its lines."""

from __future__ import annotations

import os
import struct
from typing import Callable

_MARK = struct.Struct("<Qd")  # length of the log in bytes, wall clock


class MarkWriter:
    """Notes the length of one log whenever it has changed."""

    def __init__(self, *, log_path: str, marks_path: str) -> None:
        self._log = log_path
        self._marks = marks_path
        self._noted = _last_length(marks_path)

    def note(self, wall: float) -> int:
        """The log's length now, noted if it is news."""
        try:
            length = os.stat(self._log).st_size
        except OSError:
            return 0
        if length != self._noted:
            # A log that shrank begins anew, and so do its marks: they must rise for the search to work.
            mode = "ab" if length > self._noted else "wb"
            with open(self._marks, mode) as file:
                file.write(_MARK.pack(length, wall))
            self._noted = length
        return length


def read_marks(path: str, *, start: int, end: int, limit: int) -> list[list[float]]:
    """Marks [length, wall] with start <= length <= end; thinned evenly to `limit`, the last always kept."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return []
    try:
        count = os.fstat(descriptor).st_size // _MARK.size

        def mark(index: int) -> tuple[int, float]:
            length, wall = _MARK.unpack(os.pread(descriptor, _MARK.size, index * _MARK.size))
            return length, wall

        first = _first_index(count, lambda index: mark(index)[0] >= start)
        after = _first_index(count, lambda index: mark(index)[0] > end)
        every = max(1, -(-(after - first) // limit))
        chosen = range(after - 1, first - 1, -every)
        return [[mark(index)[0], round(mark(index)[1], 3)] for index in reversed(chosen)]
    except struct.error:
        return []  # begun anew while we read: the next look finds the new marks
    finally:
        os.close(descriptor)


def _last_length(path: str) -> int:
    try:
        with open(path, "rb") as file:
            count = os.fstat(file.fileno()).st_size // _MARK.size
            if not count:
                return 0
            file.seek((count - 1) * _MARK.size)
            return int(_MARK.unpack(file.read(_MARK.size))[0])
    except OSError:
        return 0


def _first_index(count: int, holds: Callable[[int], bool]) -> int:
    """The first index for which `holds`, which stays true once true; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
