"""A line without what launchers and loggers put before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.pairs import Pair, find_pairs

_LAUNCHERS = re.compile(
    r"\[(?:rank|default)\d+\]: ?"  # torchrun
    r"|\([^()]{1,60}\bpid=\d+[^()]{0,60}\) ?"  # Ray
    r"|\[\d+,[\w:,.-]{1,60}\]<std(?:out|err)>: ?"  # mpirun
    r"|[\w.-]{1,60} logs: "
    r"|[\w.-]{1,40}-\d+ +\| "  # docker compose
    r"|\d{1,3}: (?=\D)"  # srun
    r"|[\w.-]{1,40}\d: (?=\[)"  # pdsh
)
_LEVELS = {"warn": "warning", "fatal": "critical", "notice": "info"}
_LEVEL = r"debug|info|warning|warn|error|critical|fatal|notice"
_AFTER_LEVEL = (
    r" {2,}|: ?|[| ]{0,4} - |\|[\w.]+:\d+\] ?|\|(?=\d{4}-)|\] ?| *\| *| (?=\[|\d{4}[-/]|[^\x00-\x7f])|(?<=\]) "
)
# Tried at the start of a line, again and again until none fits.
_PREFIX = re.compile(
    "|".join(
        (
            r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ (?:debug|info|warning|error) [\w.-]{1,80} line \d+ \d+\] *",
            r"\[?\d{4}[-/]\d\d[-/]\d\d[ T:]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ :|]*",
            r"\[?\d\d/\d\d(?:/\d{2,4})? \d\d:\d\d:\d\d(?: [\w.]+)?\]?[ :|]*",
            r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\][ :|]*",
            rf"\d\d:\d\d:\d\d(?:[.,-]\d+)? +(?:\| *)?(?=(?:{_LEVEL})\b)",
            r"\d\d:\d\d:\d\d[.,]\d+ \[[diwef]\] +",
            r"\[?[a-z]\d{3,4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ +)?[\w./-]+:\d+\] *",
            rf"\[?(?P<level>{_LEVEL})\]?(?:{_AFTER_LEVEL})",
            r"\[(?:[\w.-]+:\d+(?::\w+)?|[\w.]+\.[\w.]+|PID:\d+|rank:? ?\d+|pid=\d+|[\w-]+\.py)\] *",
            r"\[(?!(?:val|test|eval|train|epoch|step|iter)\w*\])[a-z_][\w.-]{0,40}(?::\d+)?\](?=\[[a-z_])",
            r"(?:>>|-|\|)(?: +|$)",
            r"[-=#]{3,}(?=[a-z])",  # ---Epoch: 3/10---
            r"\d\d-\d\d \d\d:\d\d:\d\d,? +",
            r"[^\x00-\x7f\w\u2500-\u257f]{1,4} +",  # an emoji
            r"[\w.]{1,80}:[\w<>]{1,80}:\d+ - ",
            r"[\w.]{1,80}:\d+ >> ",
            r"[IWEF] \w+/[\w./-]{1,160}:\d+\] +",
            r"wandb: (?=error|warning)",
            r"\(\w{1,40}:\d+\) (?=info|warning|error|debug)",
            r"\[[\w.-]{1,80}\] (?=\d{4}-\d\d-\d\d )",
            r"[\w./-]{1,80}\.py:\d+ +",
            r"[\w.]{1,160} - (?=(?:debug|info|warning|error|critical) )",
            r"(?:__main__|[a-z_]+(?:\.\w+)+|accelerate|mm\w+|root) - ",
            r"(?:tensorflow|absl|root|swift|__main__|\w*\.[\w.]+):(?=\S)",
            r"__main__: +",
            r"[a-z_]\w*(?:\.\w+)* +(?=(?:info|warning|error|debug): )",
        )
    ),
    re.IGNORECASE,
)
_RICH_SOURCE = re.compile(r" {2,}\w{1,60}\.py:\d{1,6} *$")
_SOURCE_WIDTH = 120
_RECORD = ("{'", '{"')
_GLOG = re.compile(r"\[?(?P<letter>[IWEF])(?:\d{3,4} \d\d:\d\d:\d\d\.\d| (?=\w+/[\w./-]{1,160}:\d+\]))")
_GLOG_LEVELS = {"I": "info", "W": "warning", "E": "error", "F": "critical"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of text, its message apart from its log prefix."""

    raw: str
    message: str
    lower: str
    level: str | None
    indent: int

    def pairs(self) -> list[Pair]:
        return find_pairs(self.message)


def read_line(raw: str) -> Line:
    """Split a line into prefix and message; the indent is that of the line after its launcher's prefix.

    >>> read_line("03/13/2023 11:47:11 - INFO - __main__ - Saved state to out").message
    'Saved state to out'
    """
    text = raw.rstrip()
    is_record = text.startswith(_RECORD)  # which many logs are full of, and which nothing is put before
    while not is_record and (found := _LAUNCHERS.match(text)):
        text = text[found.end() :]
    message = text.lstrip()
    indent = len(text) - len(message)
    level: str | None = None
    for _ in range(0 if is_record else 8):
        if level is None and (glog := _GLOG.match(message)):
            level = _GLOG_LEVELS[glog["letter"]]
        found = _PREFIX.match(message)
        if not found or not found.end():
            break
        if found["level"]:
            word = found["level"].lower()
            level = level or _LEVELS.get(word, word)
        message = message[found.end() :].lstrip()
    if source := _RICH_SOURCE.search(message, max(0, len(message) - _SOURCE_WIDTH)):
        message = message[: source.start()].rstrip()
    return Line(raw=raw, message=message, lower=message.lower(), level=level, indent=indent)
