"""Whether the files a step promised are there and whole."""

from __future__ import annotations

import glob
import json
import os
from typing import Iterable

from trackside.root import Root
from trackside.steps.decide import ExpectedFiles

_LARGEST_JSON_BYTES = 1 << 24
_LARGEST_HEADER_BYTES = 100_000_000  # what the safetensors library itself accepts


def look_for(root: Root, patterns: tuple[str, ...]) -> ExpectedFiles:
    """What is there of the expected files; nothing expected is present but proves nothing."""
    found = [list(matching_files(root, pattern)) for pattern in patterns]
    present = all(found)
    whole = bool(found) and present and all(is_whole(path) for paths in found for path in paths)
    return ExpectedFiles(present=present, whole=whole)


def matching_files(root: Root, pattern: str) -> Iterable[str]:
    """Full paths of the regular files under the root that match, sorted."""
    full_pattern = os.path.join(glob.escape(root.path), pattern)
    return (path for path in sorted(glob.glob(full_pattern, recursive=True)) if os.path.isfile(path))


def newest_whole(root: Root, pattern: str) -> str | None:
    """The full path of the matching file that was changed last, of those that are whole and not empty."""
    found = []
    for path in matching_files(root, pattern):
        try:
            seen = os.stat(path)
        except OSError:
            continue  # removed since it was listed
        if seen.st_size:
            found.append((seen.st_mtime_ns, path))
    return next((path for _, path in sorted(found, reverse=True) if is_whole(path)), None)


def is_whole(path: str) -> bool:
    """Whether a file can be the end of its writing; of most kinds nobody can tell."""
    if path.endswith(".safetensors"):
        return is_whole_safetensors(path)
    return is_whole_json(path) if path.endswith(".json") else True


def is_whole_json(path: str) -> bool:
    """Whether a .json file can be read to its end. A very long one is not read, and counts as whole."""
    try:
        if os.path.getsize(path) > _LARGEST_JSON_BYTES:
            return True
        with open(path, "rb") as file:
            json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return False
    return True


def is_whole_safetensors(path: str) -> bool:
    """Whether header and data of a .safetensors file fit together; a file cut off while saving does not."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            if not 2 <= header_bytes <= min(_LARGEST_HEADER_BYTES, size - 8):
                return False
            header = json.loads(file.read(header_bytes))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        return bool(size == 8 + header_bytes + max(ends, default=0))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return False
