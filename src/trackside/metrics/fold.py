"""Fold journals into the database: in short transactions, each with how far it got, so that no row comes twice."""

from __future__ import annotations

import sqlite3
import struct
from typing import Any, Callable, Optional

from trackside.metrics.database import insert_event, insert_sample, insert_values, put_info, transaction
from trackside.metrics.journal import MARK, STEP, STEP_LAYOUT, Journal, Record, Segment, Steps, leftover_segments
from trackside.sampler.sample import Sample, sample_from_record

_ROWS_AT_ONCE = 1000  # a few milliseconds

Snapshot = Callable[[], Optional[Sample]]

# One statement for many steps: every statement gives up the interpreter's lock, and a training that computes in Python
# gives it back after 5 ms. SQLite allows 999 parameters.
_STEPS_PER_STATEMENT = 50
_STEP_FIELDS = 9
_GROUP_LAYOUT = struct.Struct("<" + STEP_LAYOUT.format[1:] * _STEPS_PER_STATEMENT)


def step_record(step: int, timestamp: float, values: dict[str, float]) -> dict[str, Any]:
    return {"kind": "values", "step": step, "at": timestamp, "values": values}


def event_record(kind: str, timestamp: float, details: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "event", "type": kind, "at": timestamp, "details": details}


def sample_record(sample: Sample) -> dict[str, Any]:
    return {"kind": "sample", "sample": sample.as_record()}


def info_record(values: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "info", "values": values}


def fold_journal(connection: sqlite3.Connection, journal: Journal, *, snapshot: Snapshot) -> None:
    """Fold what is new in a journal of this process, and discard the segments that are full and folded.

    `snapshot` takes the sample that belongs to an event. Raises sqlite3.Error; what was not folded stays.
    """
    for segment in journal.segments():
        is_full = segment.is_full  # before it is read: what comes later belongs to the next fold
        fold_segment(connection, segment, snapshot=snapshot)
        if is_full and journal.discard(segment):
            _forget(connection, segment)


def finish_journal(connection: sqlite3.Connection, journal: Journal, *, snapshot: Snapshot) -> None:
    """Fold the rest of a journal and remove it. Raises sqlite3.Error; then its files stay for the next fold."""
    _fold_and_discard(connection, journal.close(), snapshot=snapshot)


def fold_leftovers(connection: sqlite3.Connection, folder: str, *, is_late: Callable[[], bool] = lambda: False) -> int:
    """Fold and discard the segments of processes that died; return how many there were. Raises sqlite3.Error.

    Once `is_late`, the rest stays for the next call.
    """
    found = leftover_segments(folder)
    _fold_and_discard(connection, found, snapshot=lambda: None, is_late=is_late)
    return len(found)


def _fold_and_discard(
    connection: sqlite3.Connection,
    segments: list[Segment],
    *,
    snapshot: Snapshot,
    is_late: Callable[[], bool] = lambda: False,
) -> None:
    waiting = list(segments)
    try:
        while waiting and not is_late():
            fold_segment(connection, waiting[0], snapshot=snapshot)
            folded = waiting.pop(0)
            if folded.discard():
                _forget(connection, folded)
    finally:
        for segment in waiting:
            segment.release()


def fold_segment(connection: sqlite3.Connection, segment: Segment, *, snapshot: Snapshot) -> None:
    """Fold the rest of a segment, a limited number of rows in each transaction."""
    while _fold_some(connection, segment, snapshot):
        pass


def _fold_some(connection: sqlite3.Connection, segment: Segment, snapshot: Snapshot) -> bool:
    """Fold the next rows in one transaction; False if there was nothing."""
    start = _position(connection, segment)
    found = _read_some(segment, start)
    if not found:
        return False
    # Taken before the transaction: nothing waits for a slow GPU driver.
    samples = {place: snapshot() for place, one in enumerate(found) if _is_event(one)}
    with transaction(connection):
        # Another process may have folded the same segment meanwhile.
        if _position(connection, segment) == start:
            for place, one in enumerate(found):
                if isinstance(one, Steps):
                    _insert_steps(connection, segment.job, one.data)
                else:
                    _insert_record(connection, segment.job, one.value, samples.get(place))
            connection.execute("INSERT OR REPLACE INTO TracksideJournal VALUES (?, ?)", (segment.name, found[-1].end))
    return True


def _read_some(segment: Segment, position: int) -> list[Steps | Record]:
    found: list[Steps | Record] = []
    rows = 0
    while rows < _ROWS_AT_ONCE:
        one = segment.read(position, most_steps=_ROWS_AT_ONCE - rows)
        if one is None:
            break
        rows += len(one.data) // STEP_LAYOUT.size if isinstance(one, Steps) else 1
        position = one.end
        found.append(one)
    return found


def _is_event(one: Steps | Record) -> bool:
    return isinstance(one, Record) and one.value.get("kind") == "event"


def _insert_steps(connection: sqlite3.Connection, job: str, data: bytes) -> None:
    grouped = len(data) // _GROUP_LAYOUT.size * _GROUP_LAYOUT.size
    if grouped:
        statement = _insert_statement(job, _STEPS_PER_STATEMENT)
        connection.executemany(statement, _GROUP_LAYOUT.iter_unpack(data[:grouped]))
    connection.executemany(_insert_statement(job, 1), STEP_LAYOUT.iter_unpack(data[grouped:]))


def _insert_statement(job: str, steps: int) -> str:
    """Return the statement that inserts steps as they are in the journal, with NULL for all that is not known."""
    job_id = "CAST(x'%s' AS TEXT)" % job.encode().hex()
    rows = (_select_step(job_id, 1 + _STEP_FIELDS * place) for place in range(steps))
    columns = "job_id, batch_size, step, timestamp, loss, learning_rate, gradient_norm, step_time_seconds"
    return "INSERT INTO StepMetric (%s) %s" % (columns, " UNION ALL ".join(rows))


def _select_step(job_id: str, first: int) -> str:
    """Return the row of a step whose fields are the parameters from number `first` on; none if it is not whole."""
    kind, batch_size, step, timestamp, *values, mark = ("?%d" % (first + place) for place in range(_STEP_FIELDS))
    # SQLite itself turns NaN into NULL.
    finite = ("nullif(nullif(%s, 9e999), -9e999)" % value for value in values)
    row = ", ".join((job_id, "nullif(%s, -1)" % batch_size, step, timestamp, *finite))
    return "SELECT %s WHERE %s = %d AND %s = %d" % (row, kind, STEP, mark, MARK)


def _insert_record(connection: sqlite3.Connection, job: str, value: dict[str, Any], sample: Sample | None) -> None:
    """Insert one record; one that cannot be read is left out: the rest of the journal must not wait for it."""
    kind = value.get("kind")
    try:
        if kind == "values":
            insert_values(connection, job, value["step"], value["at"], value["values"].items())
        elif kind == "sample":
            insert_sample(connection, job, sample_from_record(value["sample"]))
        elif kind == "info":
            put_info(connection, job, value["values"])
        elif kind == "event":
            taken = None if sample is None else insert_sample(connection, job, sample)
            insert_event(connection, job, value["at"], value["type"], value["details"], taken)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, sqlite3.IntegrityError):
        pass


def _position(connection: sqlite3.Connection, segment: Segment) -> int:
    found = connection.execute("SELECT position FROM TracksideJournal WHERE name = ?", (segment.name,)).fetchone()
    return 0 if found is None else int(found[0])


def _forget(connection: sqlite3.Connection, segment: Segment) -> None:
    # Only once its file is gone: without its position it would be folded again.
    connection.execute("DELETE FROM TracksideJournal WHERE name = ?", (segment.name,))
