"""Helpers that run as programs of their own: `python -m`, from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def program(name: str) -> list[str]:
    """The command line of a module below `tests.support`; to be started with `cwd=ROOT`, where it is found."""
    return [sys.executable, "-m", f"tests.support.{name}"]
