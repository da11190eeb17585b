"""Hash a file, and replace one so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file that is asked for again and again; it is read again only once it has changed."""
    found = path.stat()
    return _sha256_as_of(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@lru_cache(maxsize=1024)
def _sha256_as_of(path: Path, *_version: int) -> str:
    return sha256_of(path)


def write_atomically(path: Path, content: str | bytes, *, mode: int | None = None, durable: bool = False) -> None:
    """Replace the file at `path` by a rename. `durable`: a power cut leaves the old file or the new one.

    With `mode` the file never has wider permissions than that, not even before it has its name.
    """
    fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if mode is not None:
                os.fchmod(descriptor, mode)
        if durable:
            rename_durably(fresh, path)
        else:
            fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def rename_durably(source: Path, target: Path) -> None:
    """Rename a file once its bytes are on the disk, so that a power cut leaves the old `target` or the new one."""
    _flush(source, os.O_RDWR)
    source.replace(target)
    _flush(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
