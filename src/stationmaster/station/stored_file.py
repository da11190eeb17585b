"""A file that can be read in parts, wherever it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

Progress = Callable[[int, int], None]
"""Called with the bytes transferred so far and all bytes."""


def shifted(progress: Progress | None, *, done: int, total: int) -> Progress | None:
    """The progress of one file, reported as progress of all files: bytes of the earlier files are added."""
    if progress is None:
        return None
    return lambda now, _: progress(done + now, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file with its size and hash as they were verified when it was stored."""

    name: str
    size: int
    sha256: str
    read: Callable[[int, int], Iterator[bytes]]
    """Yields the bytes from the first offset up to, but without, the second. Raises TransferFailed, DeliveryError."""

    def whole(self) -> bytes:
        return b"".join(self.read(0, self.size))
