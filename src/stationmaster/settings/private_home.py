"""The home is private: only its user may enter it, and read the store, logs and keys in it."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OURS = (
    "stationmaster.db",  # and its -wal and -shm
    "config.",
    "known_hosts",
    "monitor.log",
    "serve.token",
    "simulator.log",
    "trusted.json",
    "worker.",
)
"""Beginnings of the names of our files: a person may have chosen a folder that holds others, too."""


def make_private_home(home: Path) -> None:
    """Make the home if needed, and withdraw what others may do with it. Raises OSError if it cannot be made."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    tighten_home(home)


def tighten_home(home: Path) -> None:
    """Withdraw the rights of others to the home and to our files in it, where they are this user's own."""
    if not is_shared_folder(home):
        _tighten(home)
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            if entry.name.startswith(_OURS) and entry.is_file(follow_symlinks=False):
                _tighten(Path(entry.path))


def open_to_others(home: Path) -> list[Path]:
    """The home and our files in it, as far as others have rights to them or own them."""
    paths = [home]
    with suppress(OSError):
        paths += sorted(path for path in home.iterdir() if path.name.startswith(_OURS) and path.is_file())
    return [path for path in paths if _is_open(path)]


def is_shared_folder(folder: Path) -> bool:
    """Whether a folder is meant for all users, as /tmp is: its rights are not ours to change."""
    with suppress(OSError):
        return folder == Path(folder.anchor) or bool(folder.stat().st_mode & stat.S_ISVTX)
    return False


def _tighten(path: Path) -> None:
    with suppress(OSError):  # read-only, or gone meanwhile
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _is_open(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & _OTHERS)
