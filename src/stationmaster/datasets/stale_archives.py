"""Removes packed and downloaded datasets that no job needs."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stationmaster.datasets.sources.cache import remove_unused_datasets

_ARCHIVE = re.compile(r"(?P<sha256>[0-9a-f]{64})\.tar(\.zst)?(\.manifest\.json)?")
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.(partial|going)")

IsWanted = Callable[[str], bool]
"""Whether a job needs the archive with this SHA-256."""


def remove_unused(datasets: Path, *, seconds: float, is_wanted: IsWanted) -> list[Path]:
    """Remove unneeded files older than `seconds`, downloaded datasets too; returns what was removed."""
    gone = [
        path
        for sha256, path in _packed(datasets)
        if _age(path) >= seconds and remove_if_stale(path, sha256, seconds=seconds, is_wanted=is_wanted)
    ]
    for left in datasets.glob(".*"):  # left by a process that was killed
        if _TEMPORARY.fullmatch(left.name) and _age(left) >= seconds:
            left.unlink(missing_ok=True)
    return gone + remove_unused_datasets(datasets / "sources", seconds=seconds)


def remove_archive(datasets: Path, sha256: str, *, seconds: float, is_wanted: IsWanted) -> None:
    """Remove the archive and its manifest, unless a job needs them or they are newer than `seconds`."""
    for found, path in _packed(datasets):
        if found == sha256:
            remove_if_stale(path, sha256, seconds=seconds, is_wanted=is_wanted)


def remove_if_stale(path: Path, sha256: str, *, seconds: float, is_wanted: IsWanted) -> bool:
    """Remove the file; True if it was removed. One that is packed again or needed at this moment stays.

    Packing renames a new file into place, so the file is moved aside and checked again there.
    """
    if is_wanted(sha256):
        return False
    aside = path.with_name(f".{secrets.token_hex(8)}.going")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return False
    if _age(aside) >= seconds and not is_wanted(sha256):
        aside.unlink()
        return True
    if path.exists():
        aside.unlink()
    else:
        aside.rename(path)
    return False


def _packed(datasets: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(datasets.glob("*.tar*")):
        if (found := _ARCHIVE.fullmatch(path.name)) and path.is_file():
            yield found["sha256"], path


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
