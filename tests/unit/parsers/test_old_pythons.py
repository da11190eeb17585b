"""The patterns mean the same on every Python 3.11."""

from __future__ import annotations

import re
from pathlib import Path

import stationmaster

_SOURCE = Path(stationmaster.__file__).parent
_POSSESSIVE_GROUP = re.compile(r"\)(?:[+*?]|\{+[\d, ]*\}+)\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Before 3.11.5 (Debian 12 has 3.11.2), Python loses text in `(?:ab*)++`; `a++`, of one character, is right."""
    found = [
        f"{path.relative_to(_SOURCE)}: {line.strip()}"
        for path in sorted(_SOURCE.rglob("*.py"))
        for line in path.read_text().splitlines()
        if "re.compile" in line or line.lstrip().startswith(("r", "+ r", "_"))
        if _POSSESSIVE_GROUP.search(line)
    ]
    assert found == []
