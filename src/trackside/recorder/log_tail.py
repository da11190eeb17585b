"""Read what a training adds to its log, as much as is cheap."""

from __future__ import annotations

import os

_MOST_BYTES = 1 << 15  # of one look; what a flood of output adds beyond that is skipped
_MOST_AT_END = 1 << 18
_LONGEST_LINE = 1 << 13


class LogTail:
    """Returns new complete lines; of a log that grows faster than it may be read, only the last ones."""

    def __init__(self, path: str, *, position: int = 0) -> None:
        self._path = path
        self.position = position

    def read(self, *, is_last: bool = False) -> bytes:
        """Return the lines since the last call; `is_last` includes a line without an end. Never raises."""
        try:
            size = os.stat(self._path).st_size
            if size < self.position:
                self.position = 0  # truncated: all of it is new
            if size == self.position:
                return b""
            begin = max(self.position, size - (_MOST_AT_END if is_last else _MOST_BYTES))
            data = self._read_from(begin, size - begin)
        except OSError:
            return b""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if is_last or len(data) - end > _LONGEST_LINE:
            end = len(data)
        self.position = begin + end
        return data[:end]

    def _read_from(self, begin: int, length: int) -> bytes:
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            return os.pread(descriptor, length, begin)
        finally:
            os.close(descriptor)
