"""Print a status whenever there is something new."""

from __future__ import annotations

import json
import os
import select
from typing import Any, Hashable

import trackside.report.thinning  # noqa: F401 (import it now: home may replace the archive later)
from trackside.machine import clock
from trackside.report.outputs import list_outputs
from trackside.report.status import Since, build_status, next_since
from trackside.root import Root
from trackside.steps.monitored_step import database_of, monitored_step
from trackside.steps.plan import Plan
from trackside.steps.supervisor_lock import is_supervised

_HEARTBEAT_SECONDS = 5.0
_OUTPUTS_SECONDS = 1.0
_SERIES_SECONDS = 2.0  # charts need no finer news, and a training may write hundreds of steps per second


def follow(root: Root, plan: Plan, since: Since, *, interval_seconds: float, source: int, sink: int) -> None:
    """Write one status per line to `sink`: now, on changes, and as a heartbeat. Ends when `source` or `sink` closes."""
    changes = Changes(root, plan)
    written_at = None
    while True:
        moment = clock.seconds_since_boot()
        with_series = changes.has_rows(moment)
        is_new = changes.is_any(moment) or with_series
        if is_new or written_at is None or moment - written_at >= _HEARTBEAT_SECONDS:
            answer = build_status(root, plan, since=since, with_series=with_series)
            since = next_since(since, answer)
            written_at = moment
            if not _write_line(sink, answer):
                return
            if answer["more"]:
                changes.forget()
                continue
        if _is_closed(source, interval_seconds):
            return


class Changes:
    """Whether anything that home wants to know has changed since the last check; cheap to call."""

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._known: Hashable = None
        self._outputs: Hashable = None
        self._outputs_at = 0.0
        step = monitored_step(plan)
        self._database = database_of(root, step) if step else None
        self._rows: Hashable = None
        self._rows_at: float | None = None

    def is_any(self, moment: float) -> bool:
        if moment - self._outputs_at >= _OUTPUTS_SECONDS:
            self._outputs_at = moment
            self._outputs = tuple(
                (output["path"], output["size"], output["mtime"]) for output in list_outputs(self._root, self._plan)
            )
        seen = (self._outputs, self._files(), is_supervised(self._root))
        is_new = seen != self._known
        self._known = seen
        return is_new

    def has_rows(self, moment: float) -> bool:
        """Return whether the database has changed; checked every few seconds only."""
        is_early = self._rows_at is not None and moment - self._rows_at < _SERIES_SECONDS
        if self._database is None or is_early:
            return False
        self._rows_at = moment
        seen = (_mark(self._database), _mark(self._database + "-wal"))
        is_new = seen != self._rows
        self._rows = seen
        return is_new

    def forget(self) -> None:
        self._known = self._rows = self._rows_at = None

    def _files(self) -> Hashable:
        folders = [self._root.try_folder(step, number) for step, number in self._root.tries()]
        paths = [self._root.stop, self._root.state]
        for folder in folders:
            paths += [folder.log, folder.exit, folder.verdict, folder.process]
        return tuple(_mark(path) for path in paths)


def _mark(path: str) -> Hashable:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns


def _write_line(sink: int, answer: dict[str, Any]) -> bool:
    line = memoryview(json.dumps(answer).encode() + b"\n")
    try:
        while line:
            line = line[os.write(sink, line) :]
    except OSError:
        return False
    return True


def _is_closed(source: int, seconds: float) -> bool:
    """Wait; True as soon as the other end has closed."""
    readable, _, _ = select.select([source], [], [], seconds)
    if not readable:
        return False
    try:
        return not os.read(source, 4096)
    except OSError:
        return True
