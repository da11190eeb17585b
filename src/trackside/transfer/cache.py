"""A cache of archives for later jobs on the machine, each named by its SHA-256, beside the jobs' folders.

The archive in a job's folder and the cached one are hard links to the same file: caching needs no extra room while the
job is there, and removing one leaves the other. Nothing here is trusted: home verifies the hash of what it took.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import NamedTuple

from trackside.errors import Misuse
from trackside.machine.locks import one_at_a_time
from trackside.records import remove_file
from trackside.root import Root

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_UNFINISHED = ".new"


class CachedArchive(NamedTuple):
    path: str
    size: int
    used_at: float


def take(root: Root, sha256: str, path: str, *, room_bytes: int, now: float) -> bool:
    """Link the cached archive with this hash to `path` in the job's folder; False if it is not cached or `path` exists.

    Removes the oldest of the others until `room_bytes` are free for the archive and what is made from it.
    """
    kept, target = _place(root, sha256), root.inside(path)
    if not os.path.isdir(root.cache):
        return False
    with one_at_a_time(root.cache):
        if os.path.isfile(kept) and not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _link_or_copy(kept, target)
            os.utime(kept, (now, now))
            _make_room(root.cache, room_bytes - os.path.getsize(kept), except_for=kept)
            return True
        _make_room(root.cache, room_bytes, except_for=kept)
        return False


def keep(root: Root, sha256: str, path: str, *, most_bytes: int, most_seconds: float, now: float) -> bool:
    """Cache the archive at `path`; False if it is too big. Removes others that are too old or too many."""
    kept, source = _place(root, sha256), root.inside(path)
    os.makedirs(root.cache, mode=0o700, exist_ok=True)
    with one_at_a_time(root.cache):
        is_kept = os.path.getsize(source) <= most_bytes
        if is_kept:
            # The cached file may be damaged; the one at `path` has just been verified.
            _link_or_copy(source, kept)
            os.utime(kept, (now, now))
        _prune(root.cache, most_bytes=most_bytes, oldest=now - most_seconds)
    return is_kept


def _place(root: Root, sha256: str) -> str:
    if _SHA256.match(sha256) is None:
        raise Misuse("%r is not a SHA-256" % sha256)
    return os.path.join(root.cache, sha256)


def _link_or_copy(source: str, target: str) -> None:
    """Create `target` whole or not at all, by a link or a rename."""
    unfinished = target + _UNFINISHED
    remove_file(unfinished)
    try:
        os.link(source, unfinished)
    except OSError:  # some file systems have no hard links
        shutil.copyfile(source, unfinished)
    # A rename between two links to one file does nothing, and leaves both.
    os.replace(unfinished, target)
    remove_file(unfinished)


def _make_room(cache: str, room_bytes: int, *, except_for: str) -> None:
    for archive in reversed(_kept(cache)):
        if shutil.disk_usage(cache).free >= room_bytes:
            return
        if archive.path != except_for:
            remove_file(archive.path)


def _prune(cache: str, *, most_bytes: int, oldest: float) -> None:
    total = 0
    for archive in _kept(cache):
        total += archive.size
        if total > most_bytes or archive.used_at < oldest:
            remove_file(archive.path)


def _kept(cache: str) -> list[CachedArchive]:
    """Return all archives, the last used first; only names that this module creates."""
    found = []
    for name in os.listdir(cache):
        if _SHA256.match(name):
            status = os.lstat(os.path.join(cache, name))
            found.append(CachedArchive(path=os.path.join(cache, name), size=status.st_size, used_at=status.st_mtime))
    return sorted(found, key=lambda archive: (-archive.used_at, archive.path))
