"""Signs of life in a log before and between training steps: another bar went on, or something new was printed.

A heartbeat is no sign: the same line again with other numbers only shows that something still prints. Nor is a bar
that restarts before it was full, until it gets further than before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.saved_state import from_json, to_json

_BAR = re.compile(r"^(?P<label>.{0,200}?)(?P<percent>\d{1,3})%[|\s]")
_COUNT = re.compile(r"(?P<done>\d+(?:\.\d+)?)(?P<unit>[kMGT]?)i?B?/(?P<total>\d+(?:\.\d+)?)(?P<total_unit>[kMGT]?)")
_NUMBERS = re.compile(r"\d+")
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_PIECE_LIMIT = 400
_SHAPE = 80
_KEPT = 200
_MOST_BARS = 100  # of one slice of text
_SLICE = 65_536


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
        moved = False
        for start in range(0, len(text), _SLICE):  # splitting much text at once would hold all other threads
            drawn = (self._tail + text[start : start + _SLICE]).replace("\r", "\n")
            lines, _, tail = drawn.rpartition("\n")
            self._tail = tail[-_PIECE_LIMIT:]
            moved = self._moved(lines) or moved
            if len(self._shapes) > _KEPT:
                self._shapes = dict(list(self._shapes.items())[-_KEPT:])
        return moved

    def state(self) -> dict[str, Any]:
        return to_json(self)

    @classmethod
    def restore(cls, state: Mapping[str, Any]) -> SignsOfLife:
        return from_json(cls, state)

    def _moved(self, lines: str) -> bool:
        if "%" not in lines:
            return self._takes_lines(lines)
        pieces = lines.split("\n")
        moved = self._takes_lines("\n".join(piece for piece in pieces if "%" not in piece))
        bars = [piece for piece in pieces if "%" in piece]
        if len(bars) > _MOST_BARS:  # how far they came is in the last of them
            bars = bars[: _MOST_BARS // 2] + bars[-_MOST_BARS // 2 :]
        for bar in bars:
            moved = self._takes(*_shape(bar[:_PIECE_LIMIT].strip())) or moved
        return moved

    def _takes_lines(self, lines: str) -> bool:
        """Whether one of the lines is new. More than are kept cannot all be known, so no more are looked at."""
        latest: dict[str, None] = {}
        different = "\n".join(dict.fromkeys(reversed(lines.split("\n"))))
        for line in dict.fromkeys(_NUMBERS.sub("#", different).split("\n")):
            if shape := line[:_PIECE_LIMIT].strip()[:_SHAPE]:
                latest[shape] = None
                if len(latest) > _KEPT:
                    break
        moved = [self._takes(shape, 0.0) for shape in reversed(latest)]
        return any(moved)

    def _takes(self, shape: str, part: float) -> bool:
        before = self._shapes.pop(shape, None)
        restarts = before is not None and before >= 1.0 and part < 1.0
        moved = before is None or part > before or restarts
        self._shapes[shape] = part if before is None or moved else before
        return moved


def _shape(piece: str) -> tuple[str, float]:
    """What stays the same from one drawing to the next, and how far a bar is."""
    bar = _BAR.match(piece)
    if not bar:
        return _NUMBERS.sub("#", piece)[:_SHAPE], 0.0
    label = bar["label"][-_SHAPE:]
    count = _COUNT.search(piece, bar.end())
    if not count or not float(count["total"]):
        return label, float(bar["percent"]) / 100
    done = float(count["done"]) * _UNITS[count["unit"]]
    total = float(count["total"]) * _UNITS[count["total_unit"]]
    return f"{label}/{count['total']}{count['total_unit']}", min(1.0, done / total)
