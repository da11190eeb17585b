"""The last lines of a job's log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stationmaster.model import LogChunk

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; `logs` needs few

Pieces = list[tuple[int, LogChunk]]

_LOOKS = (50, 500)  # pieces, before the whole log is read
_LINE_END = re.compile(rb"\r\n|\n|\r")  # each redraw of a progress bar is a line, as on a terminal


def last_pieces(station: Station, job_id: str, lines: int) -> Pieces:
    """The pieces that hold the last lines, in their order, up to the newest piece that is there."""
    for most in _LOOKS:
        pieces = [*station.logs.latest(job_id, limit=most)]
        pieces += _after(station, job_id, pieces[-1][0] if pieces else 0)
        if len(pieces) < most or _line_count(pieces) > lines:
            return _holding(pieces, lines)
    return _holding(_after(station, job_id, 0), lines)


def cut_to(pieces: Pieces, lines: int) -> Pieces:
    """The same pieces; the first begins with the first of the last lines."""
    if not pieces:
        return []
    seq, first = pieces[0]
    return [(seq, replace(first, data=first.data[_start(_joined(pieces), lines) :])), *pieces[1:]]


def _after(station: Station, job_id: str, seq: int) -> Pieces:
    found: Pieces = []
    while page := station.logs.of_job(job_id, after_seq=found[-1][0] if found else seq):
        found += page
    return found


def _holding(pieces: Pieces, lines: int) -> Pieces:
    """Without the pieces that end before the last lines begin."""
    start, begin = _start(_joined(pieces), lines), 0
    for place, (_, chunk) in enumerate(pieces):
        begin += len(chunk.data)
        if begin > start:
            return pieces[place:]
    return pieces[-1:]  # no line was asked for, but where the log ends is known


def _start(text: bytes, lines: int) -> int:
    """Where the last lines begin; an unfinished one counts."""
    ends = [found.end() for found in _LINE_END.finditer(text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    return 0 if len(ends) <= lines else ends[len(ends) - lines - 1]


def _line_count(pieces: Sequence[tuple[int, LogChunk]]) -> int:
    return len(_LINE_END.findall(_joined(pieces)))


def _joined(pieces: Sequence[tuple[int, LogChunk]]) -> bytes:
    return b"".join(chunk.data for _, chunk in pieces)
