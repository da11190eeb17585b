"""Who may read what a command writes: in the home only this user; elsewhere whoever the person's umask lets.

`main` calls `write_privately` at the start of every process, so that no file in the home is ever readable for others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_PRIVATE = 0o077
_persons: int | None = None  # None: unchanged


def write_privately() -> None:
    """From here on, new files and folders are for this user only."""
    global _persons
    before = os.umask(_PRIVATE)
    _persons = before if _persons is None else _persons


@contextmanager
def as_the_person() -> Iterator[None]:
    """Write files that a person asked for in a folder of their own."""
    if _persons is None:
        yield
        return
    os.umask(_persons)
    try:
        yield
    finally:
        os.umask(_PRIVATE)


def persons_umask() -> int:
    """The umask for a program of the person's, such as their browser; -1 for the one in force."""
    return -1 if _persons is None else _persons
