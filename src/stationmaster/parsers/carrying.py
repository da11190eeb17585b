"""Which lines can carry anything: the rest of a log is passed over without being read.

A line can only change what is known of a training if it has one of the words or signs below, which are those that the
patterns of all families look for. The others have one effect: a line of any kind ends what the line before it began.
So of a run of them only the last one is looked at, with exactly the same result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from stationmaster.parsers.errors import HINTS
from stationmaster.parsers.pieces import is_binary
from stationmaster.parsers.registry import FAMILY_SIGNS

_FIRST_BLOCK_BYTES, _BLOCK_BYTES = 256, 4_096

_PROGRESS = (
    *("loss", "lr", "learn", "step", "iter", "epo", "épo", "Épo", "batch", "update", "eta:", "dt", "ups", "per"),
    *('file "', "time", "second", "/it", "it/s", "s/", "%|", "of ", "trl:", "tel:", "hella", "学習", "数"),
)
_PHASES = (
    *("train", "tuning", "optimi", "early", "metric", "job", "resum", "cach", "encod", "comput", "build", "generat"),
    *("sampl", "val", "test", "dev", "predict", "inference", "load", "fetch", "quantiz", "resolv", "initiali"),
    *("reading", "import", "prepar", "making pipe", "dataset:", "clearing", "start", "begin", "running"),
)
_SAVES = ("sav", "backup", "writ", "wrote", "stor", "export", "dump", "creat", "backed", "保存")
#: What a pattern that ignores case takes for s, k and i.
_TAKEN_FOR_LETTERS = ("\u017f", "\u212a", "\u0130", "\u0131")
_STORED_CONTROLS = ("#033[", "#015", "^m")  # as some logs have escapes and carriage returns
#: In lower case; after and before a number there may be digits and spaces of other scripts.
_OTHERS = (
    rb":(?:(?<=\d:)|(?<=[\x80-\xf4][\x80-\xbf]:))(?=[\d\xd9-\xf0][\d\x80-\xf0])",  # a clock
    rb"/(?:(?<=[\d \t]/)|(?<=[\x80-\xf4][\x80-\xbf]/))(?=[\d \t]|[\xc2-\xf0][\x80-\xbf]|unknown)",  # a counter
    rb"e [^ \n/]{1,200}/",  # E core/device.cc:41]
    rb"f [^ \n/]{1,200}/",
)
_NO_NAMES = frozenset({"401", "403"})  # of an error only beside words that are here

# A line is read without these: what is left may be a word that was none.
_ESCAPE = re.compile(rb"\x1b(?:\[[0-?]*+[ -/]*+[@-~]?|\][^\x07\x1b\n]*+(?:\x07|\x1b\\)?|[ -/]*+[0-~])?")
_REMOVED = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n")
#: Lower case, with every end of a piece as a line feed. Of one byte for each byte.
_PLAIN = bytes(10 if code in b"\r\n\x00\x08" else code for code in bytes(range(256)).lower())


def _shortest(words: Iterable[str]) -> list[bytes]:
    """Those that have none of the others in them."""
    kept: list[bytes] = []
    for word in sorted((word.encode() for word in set(words)), key=lambda word: (len(word), word)):
        if not any(shorter in word for shorter in kept):
            kept.append(word)
    return kept


def _branches(words: Iterable[bytes]) -> Iterator[bytes]:
    """Patterns that together find each word. They begin with few letters, which the words have somewhere in them: a
    search passes over all other letters without trying a branch, and tries few at these.
    """
    left = set(words)
    while left:
        counts = Counter(letter for word in left for letter in set(word))
        anchor = max(counts, key=lambda letter: (counts[letter], letter))
        found = {word for word in left if anchor in word}
        left -= found
        yield re.escape(bytes([anchor])) + _one_of({word: word[word.index(anchor) + 1 :] for word in found})


def _one_of(tails: Mapping[bytes, bytes]) -> bytes:
    """A pattern for any of the words, of which all but these tails is read, that shares the tails' beginnings."""
    ended = [word for word, tail in tails.items() if not tail]
    branches = [b"(?<=" + re.escape(word) + b")" for word in sorted(ended)]
    for letter in sorted({tail[0] for tail in tails.values() if tail}):
        rest = {word: tail[1:] for word, tail in tails.items() if tail and tail[0] == letter}
        branches.append(re.escape(bytes([letter])) + _one_of(rest))
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


_WORDS = _shortest(
    (*(set(HINTS) - _NO_NAMES), *FAMILY_SIGNS, *_PROGRESS, *_PHASES, *_SAVES, *_TAKEN_FOR_LETTERS, *_STORED_CONTROLS)
)
_SIGN = re.compile(b"|".join((*_branches(_WORDS), *_OTHERS)))


def plain(text: bytes) -> bytes:
    """The text in lower case, with every end of a piece as a line feed; of the same length."""
    return text.translate(_PLAIN)


def any_word(words: Iterable[str]) -> re.Pattern[bytes]:
    """A pattern that finds any of the words in plain text; a match is somewhere in the word."""
    return re.compile(b"|".join(_branches(word.encode() for word in words)))


def may_carry(piece: bytes) -> bool:
    """Whether reading this piece can change more than ending what the one before it began.

    >>> may_carry(b"warming up, 17 are ready"), may_carry(b"step 17: loss 0.5")
    (False, True)
    """
    return _SIGN.search(_shown(plain(piece))) is not None


class QuietRuns:
    """Finds the runs of lines in a buffer that cannot carry anything; asked from the front to the back."""

    def __init__(self, buffer: bytes) -> None:
        self._buffer = buffer
        self._begin = self._end = 0  # of the lines of the block that is looked at
        self._size = _FIRST_BLOCK_BYTES
        self._lines = self._shown = b""  # these lines, plain, and what is shown of them

    def end_of_run(self, position: int) -> int:
        """Where the run that begins at `position` ends, at a line's start; `position` itself if there is none.

        It goes no further than a block: a search holds all other threads.
        """
        if position >= self._end:
            self._load(position)
        start = position - self._begin
        if len(self._shown) < len(self._lines):
            rest = self._lines[start:]
            return position + _before_sign(rest, _shown(rest) if start else self._shown)
        found = _SIGN.search(self._lines, start)
        if found is None:
            return self._end
        return max(position, self._begin + self._lines.rfind(b"\n", start, found.start()) + 1)

    def last_shown(self, position: int, end: int) -> bytes:
        """The last line of a run that shows anything; empty if none does."""
        lines = self._lines[position - self._begin : end - self._begin]
        shown = (self._shown if len(lines) == len(self._lines) else _shown(lines)).rstrip()
        if not _text(shown[shown.rfind(b"\n") + 1 :]).strip():  # no line at all, or spaces of another script
            shown = _text(shown).rstrip().encode()
        if not shown:
            return b""
        begin = len(lines) - len(lines.split(b"\n", shown.count(b"\n"))[-1])
        return self._buffer[position + begin : position + lines.index(b"\n", begin)]

    def has_judged(self, position: int) -> bool:
        """Whether the line at `position` was looked at; a line longer than a block is not."""
        return position < self._end

    def _load(self, position: int) -> None:
        # Blocks grow as long as one follows the other; after a jump, as behind a run of redraws, little may be needed.
        self._size = min(_BLOCK_BYTES, 2 * self._size) if position == self._end else _FIRST_BLOCK_BYTES
        block = plain(self._buffer[position : position + self._size])
        self._lines = block[: block.rfind(b"\n") + 1]
        self._shown = _shown(self._lines)
        self._begin, self._end = position, position + len(self._lines)


def _before_sign(lines: bytes, shown: bytes) -> int:
    """The length of the lines before the first text with a sign in what is shown of it."""
    position = 0
    while found := _SIGN.search(shown, position):
        quiet = shown.count(b"\n", 0, found.start())
        begin = len(lines) - len(lines.split(b"\n", quiet)[-1])
        if not is_binary(lines[begin : lines.index(b"\n", begin)]):
            return begin
        position = shown.index(b"\n", found.start()) + 1
    return len(lines)


def _shown(lines: bytes) -> bytes:
    """What is shown of the lines: without escapes and control characters."""
    return (_ESCAPE.sub(b"", lines) if b"\x1b" in lines else lines).translate(None, _REMOVED)


def _text(shown: bytes) -> str:
    return shown.decode("utf-8", "replace")
