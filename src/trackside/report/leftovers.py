"""Fold what killed processes left in their journals, where no recorder does it."""

from __future__ import annotations

import os
import time

from trackside.machine import clock
from trackside.metrics.locations import journal_folder
from trackside.root import Root
from trackside.steps.recorder_process import is_recording

_LIMIT_SECONDS = 2.0
_RECORDER_SECONDS = 10.0  # how long a recorder may take after the end; it takes a fraction of a second
_POLL_SECONDS = 0.02


def fold_leftovers_of_dead(root: Root, database: str, *, ended: float | None, wall: float) -> bool:
    """Fold the journals of dead processes unless a recorder is there to do it; never takes more than a few seconds.

    `ended` is when the plan finished, None while it runs. Returns False if rows of a finished plan are still to come.
    """
    deadline = clock.seconds_since_boot() + _LIMIT_SECONDS
    while is_recording(root):
        if ended is None:
            return True
        if clock.seconds_since_boot() > deadline:
            if wall - ended < _RECORDER_SECONDS:
                return False
            break  # it hangs
        time.sleep(_POLL_SECONDS)
    folder = journal_folder(database)
    try:
        has_some = any(os.scandir(folder))
    except OSError:
        return True
    return not has_some or _fold(database, folder, deadline) or ended is None


def _fold(database: str, folder: str, deadline: float) -> bool:
    """Fold until the deadline; True unless something is left because of it."""
    import sqlite3  # slow to import, needed only after something was killed

    from trackside.metrics.database import open_database
    from trackside.metrics.fold import fold_leftovers

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
