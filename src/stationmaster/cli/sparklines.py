"""A loss as a row of blocks between its first and its last value, in characters that the output can show."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TextIO

from stationmaster.series.buckets import Points
from stationmaster.series.sparkline import BLOCKS, PLAIN, sparkline

_ARROW, _PLAIN_ARROW = "→", "->"


def can_show(characters: str, stream: TextIO | None = None) -> bool:
    """Whether the stream, by default standard output, has these characters in its encoding."""
    try:
        characters.encode((stream or sys.stdout).encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def levels(stream: TextIO | None = None) -> str:
    """The characters of a sparkline, by height."""
    return BLOCKS if can_show(BLOCKS, stream) else PLAIN


def loss_text(
    trend: Sequence[float], *, first: float | None, last: float | None, width: int, stream: TextIO | None = None
) -> str | None:
    """`0.0988 → 0.0034  █▅▃▂▁▁`, at most so wide; None where no loss is known.

    `trend` has values in the order of the steps; `first` and `last` are the exact ones, where they are known.
    """
    known = [value for value in trend if math.isfinite(value)]
    ends = [value for value in (first, last) if value is not None]
    if not known and not ends:
        return None
    begin = first if first is not None else (known or ends)[0]
    end = last if last is not None else (known or ends)[-1]
    arrow = _ARROW if can_show(_ARROW, stream) else _PLAIN_ARROW
    text = f"{begin:.4f} {arrow} {end:.4f}"
    if len(known) < 2 or (room := width - len(text) - 2) < 4:
        return text
    points = Points([float(place) for place in range(len(known))], [*known], exact=True)
    return f"{text}  {sparkline(points, width=room, levels=levels(stream))}"
