"""Runs of redraws of one bar, skipped in one go: only the last of a run changes anything."""

from __future__ import annotations

import re

_NUMBER = rb"[-+]?\d[\d.]*+(?:e[-+]?\d++)?+"
_BAR = re.compile(
    rb"(?P<head>[^|\r\n\x1b\x08\x00^]{0,200}?) {0,3}\d{1,3}%\|[^|\r\n\x1b\x08\x00]*+\| (?P<n>\d++)/(?P<m>\d++) "
    rb"\[[\d:]++<[\d:?]++(?:, *[\d.]++ ?(?P<unit>[A-Za-z]+/[a-z]+))(?P<postfix>[^\]\r\n\x1b\x08\x00]{0,200})\] *$"
)
_VALUE = re.compile(rb"(?<![\w.])[-+]?\d[\d.]*+(?:e[-+]?\d++)?+(?![\w.])")


def run_of_redraws(piece: bytes) -> re.Pattern[bytes] | None:
    """A pattern for one or more ended redraws like this one, the last of them as its first group.

    It never skips a drawing at 0 or at the total: there a bar begins or ends, which means more than progress. All
    others differ from `piece` in finite numbers only, so each makes the one before it forgotten.
    """
    found = _BAR.match(piece) if b"%|" in piece else None
    if not found or found["n"] in (b"0", found["m"]):
        return None
    return _compiled(_numbers_open(found["head"].lstrip()), found["m"], _numbers_open(found["postfix"]))


_cache: dict[tuple[bytes, bytes, bytes], re.Pattern[bytes]] = {}


def _compiled(head: bytes, total: bytes, postfix: bytes) -> re.Pattern[bytes]:
    key = (head, total, postfix)
    if key not in _cache:
        if len(_cache) > 256:
            _cache.clear()
        _cache[key] = re.compile(
            rb"(?:( *+" + head + rb" *+\d{1,3}%\|[^|\r\n\x1b\x08\x00]*+\| (?!0/|" + total + rb"/)\d++/" + total
            + rb" \[[\d:]++<[\d:?]++, *+[\d.]++ ?(?:it/s|s/it|[A-Za-z]++/s)" + postfix + rb"\] *+)[\r\n]++)++"
        )  # fmt: skip
    return _cache[key]


def _numbers_open(text: bytes) -> bytes:
    """The text as a pattern in which every number may be another finite one."""
    parts, position = [], 0
    for value in _VALUE.finditer(text):
        parts += [re.escape(text[position : value.start()]), _NUMBER]
        position = value.end()
    return b"".join([*parts, re.escape(text[position:])])
