"""List the files of a training that somebody else started.

Its folder is nobody's promise: it may hold a million files, links out of it, or names that no database takes. So links
are not followed, hidden folders are left out, and only so many entries are looked at, those near the top first.
"""

from __future__ import annotations

import os
from collections import deque
from fnmatch import fnmatchcase

from trackside.records import read_record
from trackside.root import Root

_MOST_ENTRIES = 50_000
_DEEPEST = 8
# What trainers save beside a model, to resume.
_NOT_MODELS = ("optimizer*", "scheduler*", "rng_state*", "random_states*", "scaler*", "training_args*", "*_optimizer*")


def adopted_files(root: Root, pattern: str) -> list[str]:
    """Return the full paths, below the link in the job's folder, of regular files that match, sorted."""
    wanted = pattern.split("/")[1:]
    since = (read_record(root.adopted_since) or {}).get("since")
    return sorted(path for path, parts in _walk(root.adopted) if _matches(parts, wanted) and _is_since(path, since))


def count_adopted(folder: str, names: tuple[str, ...]) -> tuple[int, int]:
    """Return number and total size of the files in a folder whose name matches one of `names`."""
    found = [path for path, parts in _walk(folder) if any(_matches(parts[-1:], [name]) for name in names)]
    return len(found), sum(_size(path) for path in found)


def _walk(folder: str) -> list[tuple[str, list[str]]]:
    found = []
    waiting: deque[tuple[str, list[str]]] = deque([(folder, [])])
    seen = 0
    while waiting and seen < _MOST_ENTRIES:
        path, parts = waiting.popleft()
        try:
            entries = os.scandir(path)
        except OSError:
            continue
        with entries:
            for entry in entries:
                seen += 1
                if seen > _MOST_ENTRIES:
                    break
                if entry.name.startswith(".") or not _is_readable(entry.name):
                    continue
                below = [*parts, entry.name]
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.path, below))
                elif entry.is_dir(follow_symlinks=False) and len(below) < _DEEPEST:
                    waiting.append((entry.path, below))
    return found


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    if not parts or not fnmatchcase(parts[0], pattern[0]):
        return False
    is_state = len(parts) == 1 and any(fnmatchcase(parts[0], name) for name in _NOT_MODELS)
    return not is_state and _matches(parts[1:], pattern[1:])


def _is_since(path: str, since: object) -> bool:
    """Whether a file was written since the training began; an older one is another training's, or a base model."""
    try:
        return not isinstance(since, float) or os.lstat(path).st_mtime >= since
    except OSError:
        return False


def _is_readable(name: str) -> bool:
    """Whether the name is text. A file of another name would need a second one, and this folder is not changed."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
