"""Writes a file under its name only once all its bytes are on the disk and have the expected hash."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from stationmaster.errors import DiskFull, TransferFailed
from stationmaster.files import sha256_of

#: Called with (bytes transferred so far, total bytes).
Progress = Callable[[int, int], None]


def write_verified(
    chunks: Iterator[bytes],
    target: Path,
    *,
    origin: str,
    sha256: str,
    size: int,
    progress: Progress | None,
    offset: int = 0,
) -> None:
    """Write the bytes beside `target`, sync them to disk, check their hash, then rename them to `target`.

    `offset`: how many bytes an interrupted write left there (`bytes_there`); the chunks begin behind them. Raises
    TransferFailed and DiskFull.
    """
    part = partial_path(target, sha256)
    try:
        with part.open("r+b" if offset else "wb") as file:
            file.seek(offset)
            for chunk in chunks:
                file.write(chunk)
                if progress is not None:
                    progress(file.tell(), size)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        part.unlink(missing_ok=True)
        free = shutil.disk_usage(target.parent).free
        raise DiskFull(f"not enough disk space for {target}: it needs {size:,} bytes, {free:,} are free") from None
    if sha256_of(part) != sha256:
        part.unlink()
        raise TransferFailed(f"{origin} changed: it does not have SHA-256 {sha256}")
    part.replace(target)


def bytes_there(target: Path, sha256: str, *, size: int) -> int:
    """How many bytes of an interrupted write are left, to go on behind them."""
    part = partial_path(target, sha256)
    return part.stat().st_size if part.is_file() and part.stat().st_size < size else 0


def partial_path(target: Path, sha256: str) -> Path:
    return target.with_name(f".{sha256[:16]}.fetching")
