"""Names and numbers in a line, with any separator between them.

`loss=0.1`, `loss: 0.1`, `'loss': '0.1'`, `loss 0.1 (0.2)`, `Step [100/600]`, `remaining_time: 2 days, 7:32:05`.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from stationmaster.parsers.names import NAME_LIMIT, Meaning, meaning_of

_WORD = r"(?!(?:nan|inf|infinity)\b)[^\W\d][\w./@%#-]*+"
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)(?!,\d{3})|\d++(?!\d)|(?=\.\d))(?:\.\d*+)?(?:e[-+]?\d++)?"
_TIME = (
    r"\d++ days?, *\d++:\d\d:\d\d|\d++:\d\d(?::\d\d)?(?:\.\d++)?(?![\d:])"
    r"|\d++ ?[dhm],? ?\d++ ?[hms](?:,? ?\d++ ?[ms])?(?:,? ?\d++ ?s)?(?![a-z/])"
)
_WHOLE = r"\d++(?:,\d{3})*(?!,\d{3})"
_UNIT = (
    r"(?:ms|us|µs|sec|secs|seconds|s)(?:/[a-z]+)?|min(?:s|utes)?|hours?|hrs?"
    r"|(?:it|iter|iters|steps?|batch|batches)/[a-z]+(?! *[:=]? *[-+]?\d)"
)
# For lower case. A name starts at a word boundary and takes at most six words: a line is read in linear time.
_PAIR = re.compile(
    rf"(?<![\w./@%#-])(?P<name>{_WORD}(?: {_WORD}){{0,5}})(?: ?\((?P<note>[\w/]{{1,12}})\))?"
    r"['\"`]?\s*+(?P<tie>[:=]?)\s*+(?:tensor|np\.float\d\d)?['\"`\[(]*+\s*+"
    rf"(?:(?P<time>{_TIME})|(?P<number>{_NUMBER}|[-+]?(?:nan|inf(?:inity)?)\b)"
    rf"(?:\s*/\s*(?P<of>{_WHOLE})(?![\d.]*[a-z])| of (?P<out_of>{_WHOLE})"
    rf"| ?(?P<unit>{_UNIT})(?![\w/])|(?P<glued>[a-z%][\w/]*+))?)"
)
_LONGEST_NUMBER = 24


class Pair(NamedTuple):  # not a dataclass: these are made by the hundred thousand
    """A name and the number printed after it."""

    name: str  # lower case
    means: Meaning
    value: float  # nan for a clock time
    of: int | None = None  # the M of N/M
    unit: str = ""
    time: str = ""  # the value when it is a time such as 1:02:03 or 20m 1s
    tied: bool = True  # by a colon or an equals sign
    whole: bool = False


def find_pairs(text: str) -> list[Pair]:
    """All numbers with a name before them, in order.

    >>> [(pair.name, pair.value) for pair in find_pairs("Step 120: loss=0.5, lr 1e-4")]
    [('step', 120.0), ('loss', 0.5), ('lr', 0.0001)]
    """
    return [_pair(found) for found in _PAIR.finditer(text.lower())] if text else []


def _pair(found: re.Match[str]) -> Pair:
    name, note, tie, time, number, whole_of, out_of, unit, glued = found.groups()
    name = name[-NAME_LIMIT:].rstrip(".")
    if note:
        name += f" ({note})"
    bare = (number or "").replace(",", "")
    of = (whole_of or out_of or "").replace(",", "")
    return Pair(
        name=name,
        means=meaning_of(name),
        value=float(bare) if bare else math.nan,
        of=int(of) if of and len(of) < _LONGEST_NUMBER else None,
        unit=unit or glued or "",
        time=time or "",
        tied=bool(tie),
        whole=bare.isdigit() and len(bare) < _LONGEST_NUMBER,
    )
