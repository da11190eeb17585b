"""What is recorded of a training, read from its database; and Pythons in which nothing can be recorded."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOB = "a-job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: str
    at: float
    details: dict[str, Any]


def environment(database: Path) -> dict[str, str]:
    """What trackside sets for a training that it monitors."""
    return {"TRACKSIDE_DATABASE": str(database), "TRACKSIDE_JOB": JOB, "TRACKSIDE_RECORDER": "1"}


def without_trackside(folder: Path) -> dict[str, str]:
    """The variable with which a Python does not find trackside, whatever is installed."""
    (folder / "trackside").mkdir(parents=True)
    (folder / "trackside" / "__init__.py").write_text("raise ImportError('no trackside here')\n")
    return {"PYTHONPATH": str(folder)}


def steps_of(database: Path) -> list[dict[str, Any]]:
    """The rows of StepMetric, by step."""
    return _rows(database, "SELECT * FROM StepMetric ORDER BY step, id")


def values_of(database: Path, name: str) -> dict[int, float]:
    """What is stored under a name, by step."""
    rows = _rows(database, "SELECT step, value FROM StepValue WHERE name = ?", name)
    return {row["step"]: row["value"] for row in rows}


def events_of(database: Path, *, without: tuple[str, ...] = ()) -> list[Event]:
    """By time, as they happened."""
    rows = _rows(database, "SELECT * FROM TrainingEvent ORDER BY timestamp, id")
    found = [Event(kind=row["event_type"], at=row["timestamp"], details=json.loads(row["details"])) for row in rows]
    return [event for event in found if event.kind not in without]


def kinds_and_steps(database: Path, *, without: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    return [(event.kind, event.details["step"]) for event in events_of(database, without=without)]


def is_recorded(database: Path, kind: str, step: int) -> bool:
    """Not yet, while the training has not even made its tables."""
    if not database.exists() or not _rows(database, "SELECT 1 FROM sqlite_master WHERE name = 'TrainingEvent'"):
        return False
    return (kind, step) in kinds_and_steps(database)


def samples_of(database: Path) -> list[dict[str, Any]]:
    """The rows of MetricsSample, by time."""
    return _rows(database, "SELECT * FROM MetricsSample ORDER BY timestamp, id")


def facts_of(database: Path) -> dict[str, str]:
    return {row["key"]: row["value"] for row in _rows(database, "SELECT key, value FROM RunInfo")}


def _rows(database: Path, query: str, *values: object) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(database)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query, values)]
