"""Signs of life in a log before and between training steps: another bar went on, or something new was printed.

A heartbeat is no sign: the same line again with other numbers only shows that something still prints. Nor is a bar
that restarts before it was full, until it gets further than before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.saved_state import from_json, to_json

_ENDS = re.compile(r"[\r\n]+")
_BAR = re.compile(r"^(?P<label>.{0,200}?)(?P<percent>\d{1,3})%[|\s]")
_COUNT = re.compile(r"(?P<done>\d+(?:\.\d+)?)(?P<unit>[kMGT]?)i?B?/(?P<total>\d+(?:\.\d+)?)(?P<total_unit>[kMGT]?)")
_NUMBERS = re.compile(r"\d+")
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_PIECE_LIMIT = 400
_KEPT = 200


@dataclass(slots=True)
class SignsOfLife:
    """Remembers the shapes of the last few hundred lines and bars, and finds out whether new text shows progress."""

    _tail: str = ""
    _shapes: dict[str, float] = field(default_factory=dict)  # shape of a line or bar -> how far the bar was, 0..1

    @property
    def tail(self) -> str:
        """The redraw that is on the screen now: text after the last line end."""
        return self._tail

    def feed(self, text: str) -> bool:
        """Whether anything in `text` is a sign of life. Pieces may be cut anywhere."""
        *whole, tail = _ENDS.split(self._tail + text)
        self._tail = tail[-_PIECE_LIMIT:]
        moved = [self._moved(piece[:_PIECE_LIMIT]) for piece in whole]
        return any(moved)

    def state(self) -> dict[str, Any]:
        return to_json(self)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> SignsOfLife:
        return from_json(cls, state)

    def _moved(self, piece: str) -> bool:
        piece = piece.strip()
        if not piece:
            return False
        moved = False
        for shape, part in _shapes(piece):
            before = self._shapes.pop(shape, None)
            restarts = before is not None and before >= 1.0 and part < 1.0
            if before is None or part > before or restarts:
                moved = True
                before = part
            self._shapes[shape] = before
        while len(self._shapes) > _KEPT:
            del self._shapes[next(iter(self._shapes))]
        return moved


def _shapes(piece: str) -> Iterator[tuple[str, float]]:
    """What stays the same from one drawing to the next, and how far a bar is."""
    if bar := _BAR.match(piece):
        count = _COUNT.search(piece, bar.end())
        if count and float(count["total"]):
            done = float(count["done"]) * _UNITS[count["unit"]]
            total = float(count["total"]) * _UNITS[count["total_unit"]]
            yield f"{bar['label'][-80:]}/{count['total']}{count['total_unit']}", min(1.0, done / total)
        else:
            yield bar["label"][-80:], float(bar["percent"]) / 100
    else:
        yield _NUMBERS.sub("#", piece)[:80], 0.0
