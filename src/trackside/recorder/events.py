"""What the recorder asks the run's database about events: which ones the training has written itself."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Dict

_BEFORE_SECONDS, _AFTER_SECONDS = 30.0, 5.0

BY_RECORDER: Dict[str, Any] = {"source": "recorder"}
BY_KERNEL: Dict[str, Any] = {"source": "kernel"}
_FROM_LOG = "log"


def from_log(stream: str, offset: int) -> dict[str, Any]:
    """Return the details of an event that was found in a log: up to where it was read."""
    return {"source": _FROM_LOG, "log": stream, "log_offset": offset}


def log_position(connection: sqlite3.Connection, job: str, stream: str) -> int:
    """Return how far the log had been read when its last line was reported; 0 if there was none."""
    found = 0
    for (text,) in _details(connection, job, "oom_error", since=0.0):
        details = _parsed(text)
        if details.get("source") == _FROM_LOG and details.get("log") == stream:
            offset = details.get("log_offset")
            found = max(found, offset if isinstance(offset, int) else 0)
    return found


def has_own_memory_error(connection: sqlite3.Connection, job: str, *, wall: float) -> bool:
    """Return whether the training itself reported the lack of memory that its log shows at `wall`.

    An exception reaches the log only when the program ends, seconds after the training's own event.
    """
    rows = _details(connection, job, "oom_error", since=wall - _BEFORE_SECONDS, until=wall + _AFTER_SECONDS)
    return any(_parsed(text).get("source") != _FROM_LOG for (text,) in rows)


def has_event(connection: sqlite3.Connection, job: str, kind: str, *, since: float, until: float) -> bool:
    return bool(_details(connection, job, kind, since=since, until=until))


def last_step(connection: sqlite3.Connection, job: str) -> int | None:
    found = connection.execute("SELECT step FROM StepMetric WHERE job_id = ? ORDER BY id DESC LIMIT 1", (job,))
    row = found.fetchone()
    return None if row is None else int(row[0])


def has_info(connection: sqlite3.Connection, job: str, key: str) -> bool:
    found = connection.execute("SELECT 1 FROM RunInfo WHERE job_id = ? AND key = ?", (job, key))
    return found.fetchone() is not None


def _details(
    connection: sqlite3.Connection, job: str, kind: str, *, since: float, until: float = 9e99
) -> list[tuple[Any]]:
    return connection.execute(
        "SELECT details FROM TrainingEvent WHERE job_id = ? AND event_type = ? AND timestamp BETWEEN ? AND ?",
        (job, kind, since, until),
    ).fetchall()


def _parsed(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
