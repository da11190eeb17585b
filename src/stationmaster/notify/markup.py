"""Escapes and shortens plain text as each service needs it. Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable

from stationmaster.notify.base import Message

_MARKDOWN = re.compile(r"[\\*_~`|\[\]<]")
_LINE_MARKUP = re.compile(r"^( *)([#>+-])", re.MULTILINE)  # headings, quotes and lists
_LINK = re.compile(r"https?://[^\s<>]+")


def as_plain(message: Message, *, limit: int) -> str:
    return _fitted(message, limit=limit, escape=str)


def as_html(message: Message, *, limit: int) -> str:
    """For Telegram, whose limit does not count escapes."""
    return escape_html(as_plain(message, limit=limit))


def as_markdown(message: Message, *, limit: int) -> str:
    """For Discord, whose limit counts escapes."""
    return _fitted(message, limit=limit, escape=escape_markdown)


def escape_html(text: str) -> str:
    """
    >>> escape_html("<b>*_ & co")
    '&lt;b&gt;*_ &amp; co'
    """
    return html.escape(text, quote=False)


def escape_markdown(text: str) -> str:
    r"""Put a backslash before every character that could be markup, except in links, which would break.

    >>> print(escape_markdown("<b>*_ https://example.com/a_b"))
    \<b>\*\_ https://example.com/a_b
    """
    parts, begin = [], 0
    for link in _LINK.finditer(text):
        parts += [_escaped(text[begin : link.start()]), link[0]]
        begin = link.end()
    return "".join([*parts, _escaped(text[begin:])])


def clean(text: str) -> str:
    """The text without control characters (except line ends) and surrogates, which no service accepts.

    >>> clean("a\\x00b\\tc\\nd")
    'ab c\\nd'
    """
    spaced = text.replace("\t", " ")
    return "".join(one for one in spaced if one == "\n" or unicodedata.category(one) not in ("Cc", "Cs"))


def length(text: str) -> int:
    """Characters as messengers count them: those outside the basic plane, such as most emoji, count twice."""
    return len(text) + sum(character > "\uffff" for character in text)


def _escaped(text: str) -> str:
    return _LINE_MARKUP.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", text))


def _fitted(message: Message, *, limit: int, escape: Callable[[str], str]) -> str:
    """The whole text if it fits, else its beginning and where to read the rest."""
    whole = escape(message.text)
    if length(whole) <= limit:
        return whole
    tail = escape(f"…\n{message.more}" if message.more else "…")
    room = max(0, limit - length(tail))
    kept = message.text[:room]
    while length(escape(kept)) > room:
        kept = kept[: len(kept) - max(1, (length(escape(kept)) - room) // 2)]
    return escape(kept) + tail
