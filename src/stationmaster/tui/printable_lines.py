"""The last step before the terminal: what widgets have drawn controls no terminal, whoever wrote it."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from stationmaster.printable import plain


class PrintableLines(LineFilter):
    """Lines are usually made `plain` where they are read; here none can be forgotten."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [segment if segment.control else _printable(segment) for segment in segments]


def _printable(segment: Segment) -> Segment:
    text = plain(segment.text)
    if text == segment.text:
        return segment
    return Segment(text + " " * max(0, segment.cell_length - cell_len(text)), segment.style)  # as wide as before
