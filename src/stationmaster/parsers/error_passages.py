"""The passages of a log that report errors: each error with a few lines around it, a traceback whole.

passages = ErrorPassages()
for chunk in chunks:
    for line in passages.feed(chunk): ...
for line in passages.end(): ...
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stationmaster.parsers.base import Fault
from stationmaster.parsers.errors import HINTS, Notice, notice
from stationmaster.parsers.lines import read_line
from stationmaster.parsers.pieces import is_binary, shown_texts

LINES_BEFORE = 2
LINES_AFTER = 2

_LONGEST_LINE = 1 << 16  # bytes; what is longer counts as several lines
_SHOWN_CHARACTERS = 2000
_GLOG_ERROR = re.compile(r"\[?[EF]\d{3,4} \d\d:")
_NOTHING = Notice()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLine:
    """A line of a passage. Lines of one passage have the same number, from 1."""

    passage: int
    line: int  # its number in the log, from 1
    text: str
    is_error: bool  # False for the lines around it
    fault: Fault | None = None  # where this line names the error


class ErrorPassages:
    """Finds the passages of one stream as it grows, however it is cut into chunks."""

    def __init__(self) -> None:
        self._rest = b""
        self._count = 0  # lines so far
        self._before: deque[PassageLine] = deque(maxlen=LINES_BEFORE)
        self._passage = 0
        self._last = 0  # line of the last passage that was found
        self._after = 0  # lines that still belong to it
        self._in_traceback = self._background = False

    def feed(self, data: bytes) -> Iterator[PassageLine]:
        """The lines of passages that are known once these bytes are there."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            yield from self._take(line)
        while len(rest) > _LONGEST_LINE:
            yield from self._take(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        self._rest = rest

    def end(self) -> Iterator[PassageLine]:
        """The same for a last line that has no end."""
        if self._rest:
            yield from self._take(self._rest)
        self._rest = b""

    def _take(self, raw: bytes) -> Iterator[PassageLine]:
        self._count += 1
        text, found = self._read(raw)
        was_inside, self._in_traceback, self._background = self._in_traceback, found.in_traceback, found.background
        is_error = found.fault is not None or found.in_traceback or (was_inside and found.swallow)
        line = PassageLine(
            passage=self._passage, line=self._count, text=text[:_SHOWN_CHARACTERS], is_error=is_error, fault=found.fault
        )
        if is_error:
            lines = (*self._before, line)
            if not self._passage or lines[0].line > self._last + 1:
                self._passage += 1
            yield from (replace(each, passage=self._passage) for each in lines)
            self._before.clear()
            self._last, self._after = self._count, LINES_AFTER
        elif self._after:
            self._last, self._after = self._count, self._after - 1
            yield line
        else:
            self._before.append(line)

    def _read(self, raw: bytes) -> tuple[str, Notice]:
        """What a terminal showed last on this line, or the error that it showed before."""
        drawn = [part for part in raw.split(b"\r") if part.strip() and not is_binary(part)]
        if not drawn:
            return "", self._notice("") if self._in_traceback else _NOTHING
        if not self._in_traceback and not _may_tell(raw):
            return shown_texts(drawn[-1])[-1], _NOTHING
        for part in drawn[:-1]:
            if _may_tell(part) and (found := self._notice(shown_texts(part)[-1])).fault is not None:
                return shown_texts(part)[-1], found
        shown = shown_texts(drawn[-1])[-1]
        return shown, self._notice(shown)

    def _notice(self, text: str) -> Notice:
        return notice(read_line(text), in_traceback=self._in_traceback, background=self._background)


def _may_tell(part: bytes) -> bool:
    """Whether it is worth a closer look, which takes much longer."""
    lower = part.lower()
    return any(hint in lower for hint in _HINTS) or _GLOG_ERROR.match(part.decode("utf-8", "replace")) is not None


_HINTS = (*(hint.encode() for hint in HINTS), b'file "')
