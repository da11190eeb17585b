"""Fold what killed processes left in their journals, where no recorder does it."""

from __future__ import annotations

import os
import time

from trackside.machine import clock
from trackside.machine.locks import is_locked
from trackside.metrics.locations import journal_folder
from trackside.root import Root
from trackside.steps.supervisor_lock import is_supervised

_LIMIT_SECONDS = 2.0
_RECORDER_SECONDS = 10.0  # after the end; then it hangs, or the supervisor finds no room on the disk
_POLL_SECONDS = 0.02


def fold_leftovers_of_dead(root: Root, database: str, *, ended: float | None, wall: float) -> bool:
    """Fold the journals of dead processes unless a recorder is there to do it; never takes more than a few seconds.

    `ended` is when the plan finished, None while it runs. Returns False if rows of a finished plan are still to come.
    """
    if ended is None:
        if is_locked(root.recorder_lock):
            return True
    elif wall - ended < _RECORDER_SECONDS and not _await_recorder(root):
        return False
    folder = journal_folder(database)
    try:
        has_some = any(os.scandir(folder))
    except OSError:
        return True
    return not has_some or _fold(database, folder) or ended is None


def _await_recorder(root: Root) -> bool:
    """Wait until recorder and supervisor have ended; False if that takes too long. Both are done within a second."""
    deadline = clock.seconds_since_boot() + _LIMIT_SECONDS
    # A supervisor that is alive after the end waits for its recorder, or is about to start it.
    while is_locked(root.recorder_lock) or is_supervised(root):
        if clock.seconds_since_boot() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _fold(database: str, folder: str) -> bool:
    """Fold for a limited time; True unless something is left because of that."""
    import sqlite3  # slow to import, needed only after something was killed

    from trackside.metrics.database import open_database
    from trackside.metrics.fold import fold_leftovers

    deadline = clock.seconds_since_boot() + _LIMIT_SECONDS

    def is_late() -> bool:
        return clock.seconds_since_boot() > deadline

    try:
        connection = open_database(database)
    except sqlite3.Error:
        return True  # a full or read-only disk: asking again at once does not help
    try:
        fold_leftovers(connection, folder, is_late=is_late)
    except sqlite3.Error:
        return True
    finally:
        connection.close()
    return not is_late()
