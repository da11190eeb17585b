"""The folder of thumbnails stays small, and the longest unused ones go first."""

from __future__ import annotations

import os
from pathlib import Path

from stationmaster.station.local.thumbnails import ThumbnailCache


def kept(folder: Path) -> set[str]:
    return {path.name[:1] for path in folder.glob("*/*.webp")}


def put(cache: ThumbnailCache, folder: Path, name: str, data: bytes = b"x", *, at: float) -> None:
    cache.put("job", name * 64, 16, data)
    for path in folder.glob(f"*/{name}*"):
        os.utime(path, (at, at))


def test_the_longest_unused_are_removed_beyond_the_number_or_the_size(tmp_path: Path) -> None:
    cache = ThumbnailCache(tmp_path, most_files=3, most_bytes=100)
    for place, name in enumerate("abc"):
        put(cache, tmp_path, name, at=1000.0 + place)
    assert cache.get("job", "a" * 64, 16) == b"x", "it is used now"
    cache.put("job", "d" * 64, 16, b"x")
    assert kept(tmp_path) == {"a", "c", "d"}
    cache.put("job", "e" * 64, 16, b"x" * 100)
    assert kept(tmp_path) == {"e"}
    assert cache.get("job", "b" * 64, 16) is None
