"""Finds lines of a log. Plain text only: a regular expression of a stranger could keep a server busy for hours."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from stationmaster.errors import UserError
from stationmaster.model import LogChunk
from stationmaster.station.history import LogMatch

LONGEST_TEXT = 200
_LONGEST_LINE = 1 << 16  # characters; what is longer counts as several lines
_SHOWN_CHARACTERS = 2000
_SHOWN_BEFORE = 200  # of a line that is cut, before the match


def matches(pieces: Iterable[tuple[int, LogChunk]], text: str) -> Iterator[LogMatch]:
    """Lines of the log that contain the text, in upper or lower case. Raises UserError for a text that cannot match."""
    wanted = text.casefold()
    if not 0 < len(text) <= LONGEST_TEXT or "\n" in text or "\r" in text:
        raise UserError(f"a text to search for is one line of 1 to {LONGEST_TEXT} characters")
    streams: dict[tuple[int, str], _Lines] = {}
    number, seq = 0, 0
    for seq, chunk in pieces:
        lines = streams.setdefault((chunk.attempt, chunk.stream), _Lines(chunk))
        for line, found in lines.add(chunk.data, wanted):
            number += 1
            yield lines.match(number, seq, line, found, wanted)
    for lines in streams.values():
        for line, found in lines.end(wanted):
            number += 1
            yield lines.match(number, seq, line, found, wanted)


class _Lines:
    """The lines of one stream; only the one that has not ended yet is kept."""

    def __init__(self, first: LogChunk) -> None:
        self._attempt, self._stream = first.attempt, first.stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._count = 0

    def add(self, data: bytes, wanted: str) -> Iterator[tuple[int, str]]:
        text = self._rest + self._decoder.decode(data)
        whole, _, self._rest = text.rpartition("\n") if "\n" in text else ("", "", text)
        if "\n" in text:
            yield from self._search(whole, wanted)
        while len(self._rest) > _LONGEST_LINE:
            cut, self._rest = self._rest[:_LONGEST_LINE], self._rest[_LONGEST_LINE:]
            yield from self._search(cut, wanted)

    def end(self, wanted: str) -> Iterator[tuple[int, str]]:
        rest = self._rest + self._decoder.decode(b"", final=True)
        if rest:
            yield from self._search(rest, wanted)

    def _search(self, text: str, wanted: str) -> Iterator[tuple[int, str]]:
        """(number, line) of each match in whole lines."""
        before = self._count
        self._count += text.count("\n") + 1
        if wanted in text.casefold():  # most pieces have none: splitting them would take most of the time
            for number, line in enumerate(text.split("\n"), before + 1):
                if wanted in line.casefold():
                    yield number, line

    def match(self, number: int, seq: int, line: int, text: str, wanted: str) -> LogMatch:
        # A progress bar draws itself again and again in one line: show how it last looked.
        shown = [drawn for drawn in text.split("\r") if wanted in drawn.casefold()][-1]
        if len(shown) > _SHOWN_CHARACTERS:
            begin = max(0, shown.casefold().find(wanted) - _SHOWN_BEFORE)
            shown = shown[begin : begin + _SHOWN_CHARACTERS]
        return LogMatch(number=number, seq=seq, attempt=self._attempt, stream=self._stream, line=line, text=shown)
