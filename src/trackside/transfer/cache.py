"""Archives that stay on the machine for later jobs, each under its own SHA-256.

They lie beside the jobs' folders. The archive in a job's folder and the kept one are the same file under two names, so
keeping costs no room while the job is there, and whoever removes one leaves the other alone. Nothing here is believed:
home asks for the hash of what it took, as of everything.
"""

from __future__ import annotations

import os
import re
import shutil
from typing import NamedTuple

from trackside.errors import Misuse
from trackside.machine.locks import one_at_a_time
from trackside.root import Root

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_UNFINISHED = ".new"


class CachedArchive(NamedTuple):
    path: str
    size: int
    used_at: float


def take(root: Root, sha256: str, path: str, *, room_bytes: int, now: float) -> bool:
    """Whether the archive with this hash, if it was kept, is now at `path` in the job's folder, and was not before.

    The oldest of the others are removed until `room_bytes` are free for the archive and what is made of it.
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
    """The archive at `path` is kept if it is not too big; others that are too old or too many are removed."""
    kept, source = _place(root, sha256), root.inside(path)
    os.makedirs(root.cache, mode=0o700, exist_ok=True)
    with one_at_a_time(root.cache):
        is_kept = os.path.getsize(source) <= most_bytes
        if is_kept:
            # What was kept may have been damaged; what is at `path` has just been verified.
            _link_or_copy(source, kept)
            os.utime(kept, (now, now))
        _prune(root.cache, most_bytes=most_bytes, oldest=now - most_seconds)
    return is_kept


def _place(root: Root, sha256: str) -> str:
    if _SHA256.match(sha256) is None:
        raise Misuse("%r is not a SHA-256" % sha256)
    return os.path.join(root.cache, sha256)


def _link_or_copy(source: str, target: str) -> None:
    """Whole or not at all: the new name appears by a link or a rename."""
    unfinished = target + _UNFINISHED
    _remove(unfinished)
    try:
        os.link(source, unfinished)
    except OSError:  # some file systems have no second names
        shutil.copyfile(source, unfinished)
    # A rename between two names of one file does nothing at all, and leaves both.
    os.replace(unfinished, target)
    _remove(unfinished)


def _make_room(cache: str, room_bytes: int, *, except_for: str) -> None:
    for archive in reversed(_kept(cache)):
        if shutil.disk_usage(cache).free >= room_bytes:
            return
        if archive.path != except_for:
            _remove(archive.path)


def _prune(cache: str, *, most_bytes: int, oldest: float) -> None:
    total = 0
    for archive in _kept(cache):
        total += archive.size
        if total > most_bytes or archive.used_at < oldest:
            _remove(archive.path)


def _kept(cache: str) -> list[CachedArchive]:
    """All archives, the one used last first; only names that this module gives."""
    found = []
    for name in os.listdir(cache):
        if _SHA256.match(name):
            status = os.lstat(os.path.join(cache, name))
            found.append(CachedArchive(path=os.path.join(cache, name), size=status.st_size, used_at=status.st_mtime))
    return sorted(found, key=lambda archive: (-archive.used_at, archive.path))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # which is what is wanted
