"""The end of a machine's log, read again and again: only what was added since the last look is parsed."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.control.monitoring.instance_metrics import LOG_LINES
from stationmaster.parsers.base import Summary
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.reader import LogReader


class LogTail:
    """One machine's log. Parsing is what a look costs most: a hundred machines change a line or two per second."""

    def __init__(self, *, patterns: Sequence[UserPattern] = ()) -> None:
        self._patterns = patterns
        self._tail = b""
        self._reader = LogReader(patterns=patterns)
        self._summary = self._reader.summary()
        self.lines: tuple[str, ...] = ()

    def read(self, tail: bytes) -> Summary:
        """The state of the training after this end of its log; `lines` are then the lines at its end."""
        if tail != self._tail:
            known = continued_bytes(self._tail, tail)
            if not known:  # another log, or more was written than is read at once
                self._reader = LogReader(patterns=self._patterns)
            self._reader.feed(tail[known:])
            self._tail = tail
            self._summary = self._reader.summary()
            shown = (_as_shown(line) for line in tail.decode(errors="replace").split("\n"))
            self.lines = tuple(line for line in shown if line)[-LOG_LINES:]
        return self._summary


def continued_bytes(before: bytes, after: bytes) -> int:
    r"""How many bytes at the beginning of `after` are the end of `before`; 0 unless that is a whole line at least.

    >>> continued_bytes(b"one\ntwo\n", b"two\nthree\n"), continued_bytes(b"one\ntwo\n", b"three\n")
    (4, 0)
    >>> continued_bytes(b"one\ntwo\nth", b"two\nthree\n")
    6
    """
    first_line = after[: after.find(b"\n") + 1]
    place = before.find(first_line) if first_line else -1
    while place >= 0:
        if after.startswith(before[place:]):
            return len(before) - place
        place = before.find(first_line, place + 1)
    return 0


def _as_shown(line: str) -> str:
    """What a terminal shows of a line that redraws itself."""
    return line.rstrip("\r").rpartition("\r")[2].rstrip()
