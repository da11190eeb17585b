"""Record when a log had which length, about once a second, so that home can date its lines."""

from __future__ import annotations

import os
import struct
from typing import Callable, NamedTuple, Sequence

_MARK = struct.Struct("<Qd")  # length of the log in bytes, wall clock


class Mark(NamedTuple):
    length: int
    wall: float


class MarkWriter:
    """Records the length of one log whenever it has changed."""

    def __init__(self, *, log_path: str, marks_path: str) -> None:
        self._log = log_path
        self._marks = marks_path
        self._noted = _last_length(marks_path)

    def note(self, wall: float) -> int:
        """Return the log's current length, and record it if it has changed."""
        try:
            length = os.stat(self._log).st_size
        except OSError:
            return 0
        if length != self._noted:
            # A log that shrank starts over, and so do its marks: the search needs ascending lengths.
            mode = "ab" if length > self._noted else "wb"
            with open(self._marks, mode) as file:
                file.write(_MARK.pack(length, wall))
            self._noted = length
        return length


def write_marks(path: str, marks: Sequence[Mark]) -> None:
    """Write marks for a log that nobody else dates yet; lengths and times ascend."""
    with open(path, "wb") as file:
        file.write(b"".join(_MARK.pack(*mark) for mark in marks))


def read_marks(path: str, *, start: int, end: int, limit: int, apart_seconds: float = 0.0) -> list[Mark]:
    """Return marks with start < length <= end, `apart_seconds` apart and at most `limit`; always the last."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return []
    try:
        count = os.fstat(descriptor).st_size // _MARK.size

        def length_at(index: int) -> int:
            return int(_MARK.unpack(os.pread(descriptor, _MARK.size, index * _MARK.size))[0])

        first = _first_index(count, lambda index: length_at(index) > start)
        after = _first_index(count, lambda index: length_at(index) > end)
        raw = os.pread(descriptor, (after - first) * _MARK.size, first * _MARK.size)
        marks = _apart([Mark(*mark) for mark in _MARK.iter_unpack(raw)], apart_seconds)
        every = max(1, -(-len(marks) // limit))
        return marks[::-every][::-1]
    except struct.error:
        return []  # truncated while we read: the next call finds the new marks
    finally:
        os.close(descriptor)


def _apart(marks: list[Mark], seconds: float) -> list[Mark]:
    kept: list[Mark] = []
    for mark in reversed(marks):
        if not kept or kept[-1].wall - mark.wall >= seconds:
            kept.append(mark)
    return kept[::-1]


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
    """Return the first index for which `holds`, which stays true once true; `count` if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
