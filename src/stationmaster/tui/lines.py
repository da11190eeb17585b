"""Lines of text with named styles, as plain values: what screens show, without a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

Span = tuple[str, str]
"""A text and the name of its style; an empty name is the terminal's own style."""

Line = tuple[Span, ...]

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(text: str) -> str:
    """Text that a stranger's program printed, safe for a terminal: nothing that colours, moves or hides.

    >>> plain("\\x1b[31m[b]loss\\x1b[0m\\t0.5\\x07")
    '[b]loss    0.5'
    """
    return _UNPRINTABLE.sub("", _ESCAPE_SEQUENCE.sub("", text).replace("\t", "    "))


def line(text: str, style: str = "") -> Line:
    return ((text, style),)


def text_of(shown: Line) -> str:
    return "".join(text for text, _ in shown)


def wrapped(text: str, width: int, *, style: str = "", indent: str = "") -> Iterator[Line]:
    """The text in lines of at most `width` characters; all but the first begin with `indent`."""
    for part in textwrap.wrap(text, max(20, width), subsequent_indent=indent) or [""]:
        yield line(part, style)
