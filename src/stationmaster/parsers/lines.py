"""A line without what launchers and loggers put before it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.pairs import Pair, find_pairs

_LAUNCHERS = re.compile(
    r"(?:\[(?:rank|default)\d+\]: ?|\([^()]{1,60}\bpid=\d+[^()]{0,60}\) ?|\[\d+,\d+\]<std(?:out|err)>: ?|[\w.-]{1,60} logs: "
    r"|[\w.-]{1,40}-\d+ +\| |\d{1,3}: (?=\D)|[\w.-]{1,40}\d: (?=\[))"
)
_LEVELS = {
    "debug": "debug", "info": "info", "warning": "warning", "warn": "warning", "error": "error", "err": "error",
    "critical": "critical", "fatal": "critical", "notice": "info",
}  # fmt: skip
_LEVEL = r"debug|info|warning|warn|error|critical|fatal|notice"
_PREFIXES = (
    re.compile(r"\[?\d{4}[-/]\d\d[-/]\d\d[ T:]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ :|]*"),
    re.compile(r"\[?\d\d/\d\d(?:/\d{2,4})? \d\d:\d\d:\d\d(?: [\w.]+)?\]?[ :|]*"),
    re.compile(r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\][ :|]*"),
    re.compile(r"\[?[A-Z]\d{3,4} \d\d:\d\d:\d\d\.\d+ +(?:\d+ +)?[\w.-]+:\d+\] *"),
    re.compile(
        rf"\[?(?P<level>{_LEVEL})\]?(?: {{2,}}|: ?|[| ]* - |\|[\w.]+:\d+\] ?|\|(?=\d{{4}}-)|\] ?| *\| *| (?=\[)|(?<=\]) )",
        re.IGNORECASE,
    ),
    re.compile(
        r"\[(?:[\w.-]+:\d+(?::\w+)?|[\w.]+\.[\w.]+|PID:\d+|RANK:\d+|Rank \d+|rank\d+|pid=\d+|[\w-]+\.py)\] *",
        re.IGNORECASE,
    ),
    re.compile(r"(?:>>|-|\|) +"),
    re.compile(r"[\w.]+ - (?=(?:debug|info|warning|error|critical) )", re.IGNORECASE),
    re.compile(r"[\w.]+:(?:[\w.]+:)+\d* ?(?=[A-Z])"),
    re.compile(r"(?:__main__|[a-z_]+(?:\.[\w]+)+|accelerate|mm\w+|root) - "),
    re.compile(r"(?:tensorflow|absl|root|[\w.]*\.[\w.]+):(?=\S)"),
    re.compile(r"[a-z_]\w*(?:\.\w+)* +(?=(?:info|warning|error|debug): )", re.IGNORECASE),
)
_RICH_SOURCE = re.compile(r" {2,}\w{1,60}\.py:\d{1,6} *$")
_SOURCE_WIDTH = 120
_GLOG_ERROR = re.compile(r"\[?[EF]\d{3,4} \d\d:\d\d:\d\d\.\d")


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
    while found := _LAUNCHERS.match(text):
        text = text[found.end() :]
    message = text.lstrip()
    indent = len(text) - len(message)
    level = "error" if _GLOG_ERROR.match(message) else None
    for _ in range(8):
        found = next((match for prefix in _PREFIXES if (match := prefix.match(message)) and match.end()), None)
        if not found:
            break
        if "level" in found.re.groupindex:
            level = level or _LEVELS[found["level"].lower()]
        message = message[found.end() :].lstrip()
    if source := _RICH_SOURCE.search(message, max(0, len(message) - _SOURCE_WIDTH)):
        message = message[: source.start()].rstrip()
    return Line(raw=raw, message=message, lower=message.lower(), level=level, indent=indent)
