"""The two databases of a running ai-toolkit.

Its `Job` row, of which there is one here, tells what it is doing, and asks it to save or to sample; `loss_log.db` has
the loss and the learning rate of each step.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

JOB_ID = "training"
LOSSES = "loss_log.db"
SAVE, SAMPLE = "save", "sample"

_FLAGS = {SAVE: "save_now", SAMPLE: "sample_now"}
_TRAINS, _SAVES, _SAMPLES = "Training", "Saving model", "Generating images"
_ASK_SECONDS = 20.0
_READ_SECONDS = 0.2
# What the trainer reads and writes of it; stop and return_to_queue end a training without saving and stay 0.
_TABLE = """
CREATE TABLE Job (
    id TEXT PRIMARY KEY,
    status TEXT NOT NULL DEFAULT 'starting',
    info TEXT NOT NULL DEFAULT '',
    speed_string TEXT NOT NULL DEFAULT '',
    step INTEGER NOT NULL DEFAULT 0,
    total_steps INTEGER NOT NULL,
    stop INTEGER NOT NULL DEFAULT 0,
    return_to_queue INTEGER NOT NULL DEFAULT 0,
    save_now INTEGER NOT NULL DEFAULT 0,
    sample_now INTEGER NOT NULL DEFAULT 0
)
"""
_ROWS = """
SELECT steps.step, steps.wall_time, loss.value_real, rate.value_real
FROM steps
LEFT JOIN metrics AS loss ON loss.step = steps.step AND loss.key = 'loss/loss'
LEFT JOIN metrics AS rate ON rate.step = steps.step AND rate.key = 'learning_rate'
WHERE steps.step > ? ORDER BY steps.step LIMIT 1000
"""


class State(NamedTuple):
    """What ai-toolkit says of itself."""

    status: str
    info: str
    step: int  # that many are done
    total_steps: int

    @property
    def runs(self) -> bool:
        return self.status == "running"

    @property
    def phase(self) -> str:
        """One of the phases that log patterns know."""
        for start, phase in ((_TRAINS, "training"), (_SAVES, "saving"), (_SAMPLES, "sampling"), ("Cach", "caching")):
            if self.info.startswith(start):
                return phase
        return "loading"


class Row(NamedTuple):
    """One step of the loss log."""

    number: int  # counts from 0
    at: float
    loss: float | None
    learning_rate: float | None


class Refused(Exception):
    """The training cannot do now what it is asked for."""


def make_databases(database: Path, losses: Path, *, total_steps: int) -> None:
    """New ones for a new try: a request, or a step, of the try before is none of this one."""
    for path in (database, losses):
        for suffix in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    database.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(_TABLE)
        connection.execute("INSERT INTO Job (id, total_steps) VALUES (?, ?)", (JOB_ID, total_steps))


def ask(database: Path, what: str) -> None:
    """Ask the running training to save or to sample after its current step; raises Refused or sqlite3.Error."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True, timeout=_ASK_SECONDS)) as connection:
        state = _state(connection)
        if state is None or not state.runs:
            raise Refused("the training does not run")
        if state.phase not in ("training", "saving", "sampling"):
            raise Refused(f"the training has not begun ({state.info})")
        if state.step >= state.total_steps and state.phase == "sampling":
            raise Refused("all steps are trained and saved; the last samples are being made")
        with connection:
            connection.execute(f"UPDATE Job SET {_FLAGS[what]} = 1 WHERE id = ?", (JOB_ID,))


def read_state(database: Path) -> State | None:
    """What the training says now; None where it cannot be read at this moment."""
    try:
        with closing(_reading(database)) as connection:
            return _state(connection)
    except sqlite3.Error:
        return None


def read_rows(losses: Path, *, after: int) -> list[Row]:
    """The steps after the number `after`; none where they cannot be read at this moment."""
    try:
        with closing(_reading(losses)) as connection:
            return [Row(*found) for found in connection.execute(_ROWS, (after,))]
    except sqlite3.Error:
        return []


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_READ_SECONDS)


def _state(connection: sqlite3.Connection) -> State | None:
    found = connection.execute("SELECT status, info, step, total_steps FROM Job WHERE id = ?", (JOB_ID,)).fetchone()
    return None if found is None else State(*found)
