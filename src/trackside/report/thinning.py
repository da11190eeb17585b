"""Drop most redraws of progress bars; the text stays the same otherwise."""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence, Tuple

# A piece ends with a line end, or with a bare carriage return, after which it is overwritten.
_PIECE = re.compile(rb"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_PERCENT = re.compile(rb"\d{1,3}(?:\.\d+)?%")
_DIGITS = re.compile(rb"\d+")
_NOT_A_NUMBER = re.compile(rb"\b(?:nan|inf)\b", re.IGNORECASE)

_Bar = Tuple[bytes, bool]


class Thinned(NamedTuple):
    data: bytes
    places: list[int]  # where the given places are now


def thin_redraws(data: bytes, places: Sequence[int] = ()) -> Thinned:
    """Return the same bytes without the middle of each run of redraws of one bar.

    First and last of a run stay, and so do the first and the last piece of `data`, complete or not: answers can be
    joined again without a visible seam. What was written up to one of the ascending `places` stays as well: it is what
    the bar showed at a known time.
    """
    if data.count(b"\r") < 3:
        return Thinned(data, list(places))
    pieces = _PIECE.findall(data)
    bars = [_bar(piece) for piece in pieces]
    kept: list[bytes] = []
    moved: list[int] = []
    begin = length = 0
    for index, piece in enumerate(pieces):
        end = begin + len(piece)
        is_dated = False
        while len(moved) < len(places) and places[len(moved)] <= end:
            moved.append(length + places[len(moved)] - begin)
            is_dated = True
        if is_dated or not _is_middle(index, pieces, bars):
            kept.append(piece)
            length += len(piece)
        begin = end
    return Thinned(b"".join(kept), moved)


def cut_between_pieces(data: bytes) -> bytes:
    """Return `data` up to the end of its last complete piece; all of it if no piece is complete."""
    end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    return data[:end] if end else data


def _bar(piece: bytes) -> _Bar | None:
    """Return what stays the same while one bar is redrawn; None for text that is not a bar.

    That is the text before a percentage, otherwise the text without its numbers. A loss that becomes nan makes it
    another bar, so that this change is never dropped.
    """
    text = piece.rstrip(b"\r\n")
    percent = _PERCENT.search(text)
    if percent:
        return text[: percent.start()].strip(), bool(_NOT_A_NUMBER.search(text))
    if _DIGITS.search(text):
        return _DIGITS.sub(b"#", text), bool(_NOT_A_NUMBER.search(text))
    return None


def _is_middle(index: int, pieces: list[bytes], bars: list[_Bar | None]) -> bool:
    bar = bars[index]
    return (
        bar is not None
        and 0 < index < len(pieces) - 1
        and bars[index - 1] == bar == bars[index + 1]
        and pieces[index - 1].endswith(b"\r")
        and pieces[index].endswith(b"\r")
        and pieces[index + 1].endswith((b"\r", b"\n"))
    )
