"""Plain words as each service needs them: escaped so that they arrive as typed, cut where they are too long. Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable

from stationmaster.notify.base import Rendered

_MARKDOWN = re.compile(r"[\\*_~`|\[\]<]")
_LINE_MARKUP = re.compile(r"^( *)([#>+-])", re.MULTILINE)  # headings, quotes and lists
_LINK = re.compile(r"https?://[^\s<>]+")


def as_plain(message: Rendered, *, limit: int) -> str:
    return _fitted(message, limit=limit, escape=str)


def as_html(message: Rendered, *, limit: int) -> str:
    """For Telegram: it counts characters after the escapes are resolved, so they do not count here."""
    return escape_html(as_plain(message, limit=limit))


def as_markdown(message: Rendered, *, limit: int) -> str:
    """For Discord: it counts what is sent, escapes included."""
    return _fitted(message, limit=limit, escape=escape_markdown)


def escape_html(text: str) -> str:
    """
    >>> escape_html("<b>*_ & co")
    '&lt;b&gt;*_ &amp; co'
    """
    return html.escape(text, quote=False)


def escape_markdown(text: str) -> str:
    r"""Every character that could be read as markup gets a backslash, except in links, which would break.

    >>> print(escape_markdown("<b>*_ https://example.com/a_b"))
    \<b>\*\_ https://example.com/a_b
    """
    parts, begin = [], 0
    for link in _LINK.finditer(text):
        parts += [_escaped(text[begin : link.start()]), link[0]]
        begin = link.end()
    return "".join([*parts, _escaped(text[begin:])])


def clean(text: str) -> str:
    """The text without what no service takes: control characters but line ends, and halves of characters.

    >>> clean("a\\x00b\\tc\\nd")
    'ab c\\nd'
    """
    spaced = text.replace("\t", " ")
    return "".join(one for one in spaced if one == "\n" or unicodedata.category(one) not in ("Cc", "Cs"))


def length(text: str) -> int:
    """Characters as messengers count them: those outside the basic plane, as most emoji, are two."""
    return len(text) + sum(character > "\uffff" for character in text)


def _escaped(text: str) -> str:
    return _LINE_MARKUP.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", text))


def _fitted(message: Rendered, *, limit: int, escape: Callable[[str], str]) -> str:
    """The text in whole if it fits; else its beginning, with the place where the rest can be read."""
    whole = escape(message.text)
    if length(whole) <= limit:
        return whole
    tail = escape(f"…\n{message.more}" if message.more else "…")
    room = max(0, limit - length(tail))
    kept = message.text[:room]
    while length(escape(kept)) > room:
        kept = kept[: len(kept) - max(1, (length(escape(kept)) - room) // 2)]
    return escape(kept) + tail
