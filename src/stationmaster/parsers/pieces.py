"""Bytes to pieces: what a terminal would show between two redraws, however the stream was cut."""

from __future__ import annotations

import re

#: A longer piece is cut here: nothing a trainer prints about progress is that long.
PIECE_LIMIT_BYTES = 16_384

#: Carriage returns and backspaces redraw, NUL bytes are what a dead host leaves behind.
_END = re.compile(rb"[\r\n\x00\x08]+")
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+([@-~])?|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[ -/]*+[0-~])?")
_CURSOR_MOVES = frozenset("ABCDEFGHJKfsu")
_CONTROLS = bytes((*range(0x09), *range(0x0B, 0x20), 0x7F))
#: Without bells, shifts and page ends, which terminals get, and without escapes. A log of Docker has one or two a line.
_NOT_IN_TEXTS = bytes((*range(0x01, 0x07), *range(0x10, 0x1B), *range(0x1C, 0x20), 0x7F))
_LEAST_ODD = 3
_TEXT_PER_ODD = 32
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def find_end(data: bytes | bytearray, start: int) -> tuple[int, int] | None:
    """Where the piece that begins at `start` ends and where the next begins; None while it is unfinished."""
    found = _END.search(data, start, start + PIECE_LIMIT_BYTES + 1)
    if found:
        return found.start(), found.end()
    if len(data) - start > PIECE_LIMIT_BYTES:
        return start + PIECE_LIMIT_BYTES, start + PIECE_LIMIT_BYTES
    return None


def is_binary(piece: bytes) -> bool:
    """Whether the piece is no text, by its control characters: a file printed to the terminal, or worse."""
    odd = len(piece) - len(piece.translate(None, _NOT_IN_TEXTS))
    return odd >= _LEAST_ODD and odd * _TEXT_PER_ODD >= len(piece)


def shown_texts(piece: bytes) -> list[str]:
    """The texts of one piece: decoded, without colours, cut where the cursor was moved."""
    text = piece.decode("utf-8", "replace")
    if len(piece.translate(None, _CONTROLS)) == len(piece) and b"#0" not in piece and b"^M" not in piece:
        return [text]
    text = text.replace("#033[", "\x1b[").replace("#015", "\r")  # as some cloud logs store them
    text = _ESCAPE.sub(_as_break, text).replace("^M", "\r")
    return [_CONTROL.sub("", part) for part in text.split("\r")]


def _as_break(escape: re.Match[str]) -> str:
    return "\r" if escape[1] in _CURSOR_MOVES else ""
