"""Finds regular expressions that are too slow on some lines, by trying them on lines made for this purpose."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

# Exponential time shows within the first lengths, before it takes long; time with the cube of the length within the
# last ones. A pattern that goes over each place of a line once needs a hundredth of the limit.
_LENGTHS = (8, 12, 16, 20, 24, 28, 32, 48, 64, 96, 128, 192, 256)
_LIMIT_SECONDS = 0.01
_MOST_LINES = 150
_ENDS = ("\0", " !")
_MANY = 8  # a repeat with a smaller limit cannot make a line grow
_USUAL_CHARACTERS = "0a =-"
_FITS: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
}


@lru_cache(maxsize=256)
def slow_on(pattern: str) -> str | None:
    """The beginning of a line on which the pattern backtracks badly; None where none was found.

    >>> slow_on(r"(\\d+)+ steps"), slow_on(r"step (?P<step>\\d+)/(?P<total_steps>\\d+).*loss (?P<loss>\\S+)")
    ('00000000', None)
    """
    compiled = re.compile(pattern)
    for prefix, pump in _grown(pattern):
        for end in _ENDS:
            if _is_slow(compiled, prefix, pump, end):
                return f"{prefix}{pump * 8}"
    return None


def _is_slow(compiled: re.Pattern[str], prefix: str, pump: str, end: str) -> bool:
    for length in _LENGTHS:
        line = prefix + pump * (length // len(pump)) + end
        if _seconds(compiled, line) > _LIMIT_SECONDS and _seconds(compiled, line) > _LIMIT_SECONDS:
            return True
    return False


def _seconds(compiled: re.Pattern[str], line: str) -> float:
    began = time.thread_time()  # others on the same computer do not count
    compiled.search(line)
    return time.thread_time() - began


def _grown(pattern: str) -> Iterator[tuple[str, str]]:
    """Beginnings and what is repeated after them, for every part of the pattern that may repeat."""
    parsed = importlib.import_module("re._parser").parse(pattern)  # the module that `re` itself reads patterns with
    repeats: list[tuple[str, Any, str]] = []
    whole = _sample(parsed, "", repeats)
    characters = dict.fromkeys(_USUAL_CHARACTERS + whole)
    found: dict[tuple[str, str], None] = {}
    for prefix, body, text in repeats:
        if text:
            found[prefix, text] = None
        if len(body) == 1:
            found.update({(prefix, char): None for char in characters if _fits(body[0], char)})
        if prefix:
            found["", prefix + text] = None
    yield from list(found)[:_MOST_LINES]


def _sample(parsed: Iterable[Any], prefix: str, repeats: list[tuple[str, Any, str]]) -> str:
    """A text that the parsed pattern may match; every repeat in it goes to `repeats`, with what comes before it."""
    text = ""
    for node in parsed:
        text += _sample_of(node, prefix + text, repeats)
    return text


def _sample_of(node: Any, prefix: str, repeats: list[tuple[str, Any, str]]) -> str:
    name, value = str(node[0]), node[1]
    match name:
        case "LITERAL":
            return chr(value)
        case "ANY" | "IN" | "NOT_LITERAL":
            return next((char for char in _USUAL_CHARACTERS + "A_.:\t!é" if _fits(node, char)), "")
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, body = value
            inner = _sample(body, prefix, repeats)
            if int(most) > _MANY:
                repeats.append((prefix, body, inner))
            return inner * max(1, min(int(least), 100))
        case "SUBPATTERN":
            return _sample(value[-1], prefix, repeats)
        case "ATOMIC_GROUP":
            return _sample(value, prefix, repeats)
        case "BRANCH":
            first, *_ = [_sample(each, prefix, repeats) for each in value[1]]  # all, for the repeats in them
            return first
        case _:  # places, looks ahead and back, groups again: a text without them will do
            return ""


def _fits(node: Any, char: str) -> bool:
    """Whether the node, one of a pattern that matches a single character, matches this one."""
    name, value = str(node[0]), node[1]
    match name:
        case "LITERAL":
            return bool(chr(value) == char)
        case "NOT_LITERAL":
            return bool(chr(value) != char)
        case "ANY":
            return True
        case "RANGE":
            return bool(value[0] <= ord(char) <= value[1])
        case "CATEGORY":
            known = _FITS.get(str(value).replace("_NOT_", "_"))
            return known is not None and known(char) != ("_NOT_" in str(value))
        case "IN":
            is_negated = str(value[0][0]) == "NEGATE"
            return any(_fits(each, char) for each in value[is_negated:]) != is_negated
        case "SUBPATTERN":
            return len(value[-1]) == 1 and _fits(value[-1][0], char)
        case "BRANCH":
            return any(len(each) == 1 and _fits(each[0], char) for each in value[1])
        case _:
            return False
