"""Ask the running ai-toolkit to save or to sample: python3 ask.py save|sample --database FILE

Exit code 0 means that it is asked: it does so at the end of its current step.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from pathlib import Path

from job_database import SAMPLE, SAVE, Refused, ask


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=(SAVE, SAMPLE))
    parser.add_argument("--database", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        ask(arguments.database, arguments.what)
    except (Refused, sqlite3.Error) as problem:
        print(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
