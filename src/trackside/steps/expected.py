"""Check whether the files that a step must write are there and complete."""

from __future__ import annotations

import glob
import json
import os
from typing import Iterable

from trackside.root import Root
from trackside.steps.decide import ExpectedFiles

_LARGEST_JSON_BYTES = 1 << 24
_LARGEST_HEADER_BYTES = 100_000_000  # what the safetensors library itself accepts


def check_expected(root: Root, patterns: tuple[str, ...]) -> ExpectedFiles:
    """Check the expected files; an empty list counts as present but proves nothing."""
    found = [list(matching_files(root, pattern)) for pattern in patterns]
    present = all(found)
    whole = bool(found) and present and all(is_whole(path) for paths in found for path in paths)
    return ExpectedFiles(present=present, whole=whole)


def matching_files(root: Root, pattern: str) -> Iterable[str]:
    """Return the full paths of matching regular files under the root, sorted."""
    full_pattern = os.path.join(glob.escape(root.path), pattern)
    return (path for path in sorted(glob.glob(full_pattern, recursive=True)) if os.path.isfile(path))


def newest_whole(root: Root, pattern: str) -> str | None:
    """Return the full path of the newest matching file that is complete and not empty."""
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
    """Return whether a file looks complete; for most kinds that cannot be checked, and the answer is True."""
    if path.endswith(".safetensors"):
        return is_whole_safetensors(path)
    return is_whole_json(path) if path.endswith(".json") else True


def is_whole_json(path: str) -> bool:
    """Return whether a .json file can be parsed. A very long one is not read, and counts as complete."""
    try:
        if os.path.getsize(path) > _LARGEST_JSON_BYTES:
            return True
        with open(path, "rb") as file:
            json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return False
    return True


def is_whole_safetensors(path: str) -> bool:
    """Return whether header and size of a .safetensors file match; in a file cut off while saving they do not."""
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
