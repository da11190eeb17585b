"""Text that strangers wrote, safe to show: machines, datasets, servers and providers control no terminal. Pure.

In texts, escape sequences are removed whole: colours, cursor moves, window titles, the clipboard. What else could
control a terminal or deceive a reader is shown, such as `\\x07` or `\\u202e`: control characters, those that
reverse or hide text (https://trojansource.codes), and halves of surrogate pairs.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

_LONGEST = 4096  # characters of one sequence; what is longer, or never ends, is shown

_INVISIBLE = (
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_ODD = rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_INVISIBLE}]"
_ODD_OR_BREAK = rf"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]"

# Sequences as ECMA-48 defines them, after an introducer of one character (C1) or two.
_CSI, _STRING = r"(?:(?<=\x1b)\[|(?<=\x9b))", r"(?:(?<=\x1b)[\]PX^_]|(?<=[\x90\x98\x9d-\x9f]))"
_PARAMETERS = rf"[0-?]{{0,{_LONGEST}}}[ -/]{{0,8}}"
_CONTENT = rf"[^\x00-\x1f\x7f-\x9f]{{0,{_LONGEST}}}"
_REST = (
    rf"{_CSI}{_PARAMETERS}[@-~]|{_STRING}{_CONTENT}(?:\x07|\x1b\\|\x9c)"
    r"|(?<=\x1b)[ -/]{1,8}[0-~]|(?<=\x1b)[0-OQ-WYZ\\`-~]"
)
_REDRAW = r"(?<=[\x08\r])[\x08\r]*\n?"
# Each begins with one set of characters: then `re` skips all others at the speed of memory.
_REPLACED = rf"{_ODD}(?:{_REST}|{_REDRAW})?"
_REPLACED_IN_LINE = rf"{_ODD_OR_BREAK}(?:{_REST})?"
_UNFINISHED = rf"{_ODD}(?:{_CSI}{_PARAMETERS}|{_STRING}{_CONTENT}\x1b?|(?<=\x1b)[ -/]{{0,8}}|(?<=[\x08\r])[\x08\r]*)\Z"


def printable(text: str) -> str:
    """The text as it may be printed, with its line ends and tabs. A redraw of a progress bar begins a new line: nothing
    that was printed before is overwritten.

    >>> print(printable("\\x1b[31mloss\\x1b[0m 0.5\\x07\\x1b]0;title\\x07 10%\\r20%"))
    loss 0.5\\x07 10%
    20%
    """
    return _compiled(_REPLACED).sub(_replacement, text) if _compiled(_ODD).search(text) else text


def one_line(text: str) -> str:
    """All of the text on one line, for names and errors within our own lines: they must not look like two.

    >>> print(one_line("there is no job a\\nb"))
    there is no job a\\nb
    """
    return _compiled(_ODD_OR_BREAK).sub(_shown, text)


def words_of(text: str) -> str:
    """The text's words on one line, for sentences and messages: nothing in it can look like a line of its own.

    >>> words_of("CUDA\\terror\\r\\n\\x1b[1mNext: rm -r\\x1b[0m")
    'CUDA error Next: rm -r'
    """
    if _compiled(_ODD_OR_BREAK).search(text):
        text = _compiled(_REPLACED_IN_LINE).sub(lambda found: " " if found[0].isspace() else "", text)
    return " ".join(text.split())


def plain(text: str) -> str:
    """The text on one line without anything that cannot be shown, where there is no room to show it.

    >>> plain("\\x1b[31m[b]loss\\x1b[0m\\t0.5\\x07")
    '[b]loss    0.5'
    """
    return (
        _compiled(_REPLACED_IN_LINE).sub("", text.replace("\t", "    "))
        if _compiled(_ODD_OR_BREAK).search(text)
        else text
    )


class PrintableStream:
    """`printable` for text that comes in pieces: together they give what the whole text would."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be printed by now; an unfinished sequence is held back."""
        text = self._held + piece
        self._held = ""
        if not _compiled(_ODD).search(text):
            return text
        unfinished = _compiled(_UNFINISHED).search(text, text.rfind("\n") + 1)
        if unfinished is not None:
            text, held = text[: unfinished.start()], unfinished[0]
            self._held = "\r" if held[0] in "\x08\r" else held
        return _compiled(_REPLACED).sub(_replacement, text)

    def end(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return printable(held)


def json_text(value: Any, *, indent: int | None = None) -> str:
    """The value as JSON that is exact and safe to show: what `printable` would change is escaped as JSON escapes it.

    >>> print(json_text({"caf\\u00e9": "\\x1b[2J\\u202e"}))
    {"café": "\\u001b[2J\\u202e"}
    """
    return _compiled(_ODD).sub(_as_json, json.dumps(value, indent=indent, ensure_ascii=False, default=str))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """When it is needed: that takes a millisecond or two, and many commands need few of them."""
    return re.compile(pattern)


def _replacement(found: re.Match[str]) -> str:
    return "\n" if found[0][0] in "\x08\r" else _shown(found)


def _shown(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1] if len(found[0]) == 1 else ""


def _as_json(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
