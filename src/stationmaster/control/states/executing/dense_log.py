"""Statuses with much to read: those that are read beside the event loop, and the note that not all of one was read."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.control.states.executing.training_events import News
from stationmaster.model import Job
from stationmaster.remote.status import Status
from stationmaster.store.writes import NewEvent

_SHORT_TEXT = 2_048  # bytes: what a training prints in a minute; reading them takes some milliseconds at most
_FEW_ROWS = 500
_LINES = "lines"  # among what is thinned


def takes_long(job: Job, status: Status | None) -> bool:
    """Whether reading the status may take longer than the event loop can wait."""
    if status is None:
        return False
    unfinished = (job.watching.reader or {}).get("pending", "")
    text = len(unfinished) + sum(len(piece.data) for piece in status.log)
    return text > _SHORT_TEXT or sum(len(table) for table in status.series) > _FEW_ROWS


def thinned_news(job: Job, *, is_thinned: bool) -> News:
    """That parts of the log are not read, reported once an attempt."""
    if not is_thinned or _LINES in job.watching.thinned:
        return News(job=job)
    watching = replace(job.watching, thinned=(*job.watching.thinned, _LINES))
    return News(job=replace(job, watching=watching), events=(NewEvent(kind="log_thinned", payload={}),))
