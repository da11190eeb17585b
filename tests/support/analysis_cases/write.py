"""Writes every case as a folder: python -m tests.support.analysis_cases.write DIR."""

from __future__ import annotations

import string
import sys
from pathlib import Path

from tests.support.analysis_cases.catalogue import CASES


def main() -> None:
    folder = Path(sys.argv[1])
    for number, (name, make) in enumerate(CASES.items()):
        make().write(folder / "cases" / f"{_numbered(number)}-{name}")
    print(f"{len(CASES)} cases in {folder}")


def _numbered(number: int) -> str:
    """Return a number as two characters, by which a scorer tells the folders apart."""
    digits = string.digits + string.ascii_lowercase
    return digits[number // len(digits)] + digits[number % len(digits)]


if __name__ == "__main__":
    main()
