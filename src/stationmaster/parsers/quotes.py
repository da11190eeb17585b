"""Text of a machine, for people: without control characters, and without what may be a secret."""

from __future__ import annotations

import re
import unicodedata

_LONGEST_READ = 4000
_LONGEST_QUOTE = 300
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control characters, turned text, halves, line ends
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_URL_DETAILS = re.compile(r"(\bhttps?://)(?:[^\s/@'\"]{1,200}@)?([^\s?'\"]{0,500})(\?[^\s'\")]*)?")
_TOKEN = re.compile(
    r"\b(?:hf_|sk-|gh[opsu]_|github_pat_|glpat-|xox[abp]-|AKIA)[\w-]{8,}"
    r"|(?<=bearer )\S+|(?<=token=)\S+|(?<=key=)\S+|(?<=secret=)\S+|(?<=password=)\S+",
    re.IGNORECASE,
)


def quoted(text: str) -> str:
    """A machine's text as one short line, without control characters and without what may be a secret.

    >>> quoted("HTTPError: 401 for\\turl: https://me:pw@host/a?sig=x \\x1b[31mhf_abcdefghijkl")
    'HTTPError: 401 for url: https://host/a?… …'
    """
    line = " ".join(without_secrets(text[:_LONGEST_READ]).split())
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"


def without_secrets(text: str) -> str:
    """A machine's text with its lines, without control characters and without what may be a secret."""
    return "\n".join(_clean(line) for line in _ESCAPE.sub("", text).splitlines())


def _clean(line: str) -> str:
    shown = "".join(" " if unicodedata.category(letter) in _NOT_SHOWN else letter for letter in line)
    return _TOKEN.sub("…", _URL_DETAILS.sub(_without_details, shown))


def _without_details(url: re.Match[str]) -> str:
    return f"{url[1]}{url[2]}{'?…' if url[3] else ''}"
