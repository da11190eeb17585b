"""Words of a command line that is still being typed: taken apart, and put back with quotes. Pure, for bash and zsh."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SAFE = re.compile(r"[\w@%+=:,./-]")  # \w with letters of all languages, which no shell treats specially
_SPECIAL_IN_DOUBLE = re.compile(r'[\\"$`]')
_PREFIXES = "@$"  # at these, readline begins the word with them
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The words before the last one, the last one, and what of it the shell keeps when it inserts a candidate."""

    words: tuple[str, ...]
    begun: str
    kept: str = ""
    #: The quote that is open at the end: ', " or none.
    quote: str = ""


def typed_words(line: str, *, breaks: str = "", spaces: str = " \t\n") -> Typed:
    """The words of a line up to the cursor, without quotes; nothing is expanded.

    Words end at `spaces`. `breaks` are the other characters at which bash begins a new word to complete
    (COMP_WORDBREAKS).

    >>> typed_words("stationmaster show 'my jo")
    Typed(words=('stationmaster', 'show'), begun='my jo', kept='', quote="'")
    >>> typed_words("sm train --recipe=tiny", breaks="=")
    Typed(words=('sm', 'train'), begun='--recipe=tiny', kept='--recipe=', quote='')
    """
    words: list[str] = []
    current, kept, quote, is_word = "", "", "", False
    letters = iter(line)
    for letter in letters:
        if quote == "'" or (quote and letter not in '"\\'):
            quote, current = ("", current) if letter == quote else (quote, current + letter)
        elif letter == "\\":
            after = next(letters, "")
            escapes = not quote or after in '"\\$`'
            current, is_word = current + (after if escapes else f"\\{after}"), True
        elif letter == quote:
            quote = ""
        elif letter in "'\"":
            quote, is_word, kept = letter, True, current
        elif letter in spaces:
            if is_word:
                words.append(current)
            current, kept, is_word = "", "", False
        else:
            if letter in breaks:
                kept = current if letter in _PREFIXES else current + letter
            current, is_word = current + letter, True
    while words and _ASSIGNMENT.match(words[0]):
        del words[0]
    return Typed(words=tuple(words), begun=current, kept=kept, quote=quote)


def unquoted(word: str) -> str:
    """One word as the shell would read it, also with an open quote; nothing is expanded.

    >>> unquoted(r"my\\ job"), unquoted("'my jo")
    ('my job', 'my jo')
    """
    return typed_words(word, spaces="").begun


def quoted_for_bash(text: str, quote: str) -> str | None:
    """The text as bash reads it back within this quote; None if there is no such form.

    >>> quoted_for_bash("a $(b)", ""), quoted_for_bash("a $(b)", '"'), quoted_for_bash("it's", "'")
    ('a\\\\ \\\\$\\\\(b\\\\)', 'a \\\\$(b)', None)
    """
    if quote == "'":
        return None if "'" in text else text
    if quote == '"':  # the history's ! has no escape there
        return None if "!" in text else _SPECIAL_IN_DOUBLE.sub(r"\\\g<0>", text)
    return "".join(letter if _SAFE.fullmatch(letter) else f"\\{letter}" for letter in text)
