"""Lines of text with named styles, as plain values: what screens show, without a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

Span = tuple[str, str]
"""A text and the name of its style; an empty name is the terminal's own style."""

Line = tuple[Span, ...]


def line(text: str, style: str = "") -> Line:
    return ((text, style),)


def text_of(shown: Line) -> str:
    return "".join(text for text, _ in shown)


def wrapped(text: str, width: int, *, style: str = "", indent: str = "") -> Iterator[Line]:
    """The text in lines of at most `width` characters; all but the first begin with `indent`."""
    for part in textwrap.wrap(text, max(20, width), subsequent_indent=indent) or [""]:
        yield line(part, style)
