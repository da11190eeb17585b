"""Copies a SQLite store that may be in use into one file, as it was at one moment."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from stationmaster.errors import StoreError, UserError
from stationmaster.store.engine import first_line


def back_up(store: Path, target: Path, *, overwrite: bool) -> int:
    """Write the copy, which only its owner may read, and return its size. `target` is never half-written.

    Writers are not blocked: the copy is of the moment at which it began. Raises UserError, StoreError.
    """
    folder = target.parent
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", hint="create it, or name another file")
    if target.is_dir() or (target.exists() and not overwrite):
        what = "is a folder" if target.is_dir() else "exists"
        raise UserError(f"{target} {what}", hint="name a new file, or pass --force to overwrite a file")
    if target.exists() and target.samefile(store):
        raise UserError(f"{target} is the store itself", hint="name another file")
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=f".{target.name}.")  # mode 0600
    os.close(descriptor)
    copy = Path(name)
    try:
        _copy(store, copy)
        copy.replace(target)
    except sqlite3.Error as problem:
        raise StoreError(f"the copy failed: {first_line(problem)}", hint="run `stationmaster store check`") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{name}{suffix}").unlink(missing_ok=True)
    return target.stat().st_size


def _copy(store: Path, target: Path) -> None:
    address = f"{store.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)  # in one step: in several, each write of others would start it anew
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a -wal beside it
        (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise sqlite3.DatabaseError(f"the store is damaged: {found}")
    with target.open("rb+") as file:
        os.fsync(file.fileno())
