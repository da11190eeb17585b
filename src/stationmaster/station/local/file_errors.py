"""What the system says of a file that a person named, in the words of our own errors."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from stationmaster.errors import UserError

_NOT_THE_NAME = (errno.ENOSPC, errno.EDQUOT, errno.EPIPE)
"""Errors that another name would not mend."""


@contextmanager
def user_errors_of_files(hint: str) -> Iterator[None]:
    """A folder or file that cannot be used raises UserError with this hint."""
    try:
        yield
    except OSError as problem:
        if problem.errno in _NOT_THE_NAME or not problem.strerror:
            raise
        place = f"{problem.filename}: " if problem.filename else ""
        raise UserError(f"{place}{problem.strerror}", hint=hint) from None
