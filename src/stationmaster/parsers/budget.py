"""The limit on how much of a log is read in one visit, however dense the log is.

Counted is what was read, not the time that it took: the same text always gives the same readings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.carrying import any_word, plain

#: A MiB of honest output has fewer: a line with a loss takes some hundred bytes.
_MOST_PIECES = 12_000
_BYTES_PER_PIECE = 128  # a longer piece counts as several
_MOST_BARS = 300
_TAIL_BYTES = 8_192
_MOST_FINDINGS = 64
_LINES_PER_FINDING = 3
_SLICE_BYTES = 65_536  # a search holds all other threads
_LONGEST_WORD = 16

#: Looked for in what is not read: errors, and checkpoints that were saved.
_GRAVE = any_word(("traceback (", "error", "exception", "out of memory", "killed", "saving ", "saved", "checkpoint"))
_LINE_END = re.compile(rb"[\r\n]+")


@dataclass(slots=True, kw_only=True)
class Budget:
    """What may still be read in a visit."""

    pieces: int = _MOST_PIECES
    bars: int = _MOST_BARS
    findings: int = _MOST_FINDINGS
    is_thinned: bool = False  # something was left out besides redraws of bars

    def spend(self, piece: bytes) -> None:
        self.pieces -= 1 + len(piece) // _BYTES_PER_PIECE

    def is_spent(self) -> bool:
        return self.pieces <= 0

    def kept(self, rest: bytes) -> bytes:
        """What is still to be read of the rest once the budget is spent: lines that name an error or a checkpoint, and
        the end of the text.
        """
        tail = rest.rfind(b"\n", 0, max(0, len(rest) - _TAIL_BYTES)) + 1
        tail = max(tail, len(rest) - 2 * _TAIL_BYTES)
        self.is_thinned = self.is_thinned or tail > 0
        return b"".join((*self._grave_lines(rest[:tail]), rest[tail:]))

    def _grave_lines(self, text: bytes) -> list[bytes]:
        lines: list[bytes] = []
        position = 0
        while position < len(text) and self.findings:
            part = plain(text[position : position + _SLICE_BYTES])
            found = _GRAVE.search(part)
            if found is None:
                position += max(len(part) - _LONGEST_WORD, _LONGEST_WORD)
                continue
            self.findings -= 1
            begin = position + part.rfind(b"\n", 0, found.start()) + 1
            end = position + found.end()
            for _ in range(_LINES_PER_FINDING):
                ended = _LINE_END.search(text, end, end + _TAIL_BYTES)
                end = ended.end() if ended else min(len(text), end + _TAIL_BYTES)
            lines += [text[begin:end], b"\n"]
            position = end
        return lines
