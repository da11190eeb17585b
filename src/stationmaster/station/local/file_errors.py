"""Errors of the operating system about a path that a person gave, as UserError."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from stationmaster.errors import UserError

_NOT_THE_NAME = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE)
"""Errors that another path would not solve."""


@contextmanager
def user_errors_of_files(hint: str) -> Iterator[None]:
    """Raise UserError with this hint for a folder or file that cannot be used."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _NOT_THE_NAME or not problem.strerror:
            raise
        place = f"{problem.filename}: " if problem.filename else ""
        raise UserError(f"{place}{problem.strerror}", hint=hint) from None
