"""Writes every case as a folder: python -m tests.support.analysis_cases.write DIR."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.analysis_cases.catalogue import CASES


def main() -> None:
    folder = Path(sys.argv[1])
    for number, (name, make) in enumerate(CASES.items(), start=1):
        made = make()
        made.write(folder / "cases" / f"{number:03}-{name}")
    print(f"{len(CASES)} cases in {folder}")


if __name__ == "__main__":
    main()
