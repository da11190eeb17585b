"""Check whether the files that a step must write are there and complete."""

from __future__ import annotations

import glob
import json
import os
from typing import Iterable

from trackside.root import ADOPTED, Root
from trackside.steps.adopted_files import adopted_files
from trackside.steps.decide import ExpectedFiles

_LARGEST_JSON_BYTES = 1 << 24
_LARGEST_HEADER_BYTES = 100_000_000  # what the safetensors library itself accepts


def check_expected(root: Root, patterns: tuple[str, ...]) -> ExpectedFiles:
    """Check the expected files; an empty list counts as present but proves nothing."""
    found = [list(matching_files(root, pattern)) for pattern in patterns]
    present = all(found)
    whole = bool(found) and present and all(is_whole(path) for paths in found for path in paths)
    return ExpectedFiles(present=present, whole=whole)


def check_any(root: Root, patterns: tuple[str, ...]) -> ExpectedFiles:
    """Check whether the newest file of any of the patterns is complete; for a training whose own names nobody knows."""
    found = [path for pattern in patterns if (path := newest(root, pattern)) is not None]
    last = max(found, key=_modified, default=None)
    return ExpectedFiles(present=last is not None, whole=last is not None and is_whole(last))


def matching_files(root: Root, pattern: str) -> Iterable[str]:
    """Return the full paths of matching regular files under the root, sorted."""
    if pattern.startswith(ADOPTED + "/"):
        return adopted_files(root, pattern)
    full_pattern = os.path.join(glob.escape(root.path), pattern)
    return (path for path in sorted(glob.glob(full_pattern, recursive=True)) if os.path.isfile(path))


def newest(root: Root, pattern: str) -> str | None:
    """Return the full path of the newest matching file that is not empty."""
    return next((path for _, path in _by_age(root, pattern)), None)


def newest_whole(root: Root, pattern: str) -> str | None:
    """Return the full path of the newest matching file that is complete and not empty."""
    return next((path for _, path in _by_age(root, pattern) if is_whole(path)), None)


def _by_age(root: Root, pattern: str) -> list[tuple[int, str]]:
    """Return (modification time, path) of the matching files that are not empty, newest first."""
    found = []
    for path in matching_files(root, pattern):
        try:
            seen = os.stat(path)
        except OSError:
            continue  # removed since it was listed
        if seen.st_size:
            found.append((seen.st_mtime_ns, path))
    return sorted(found, reverse=True)


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


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
