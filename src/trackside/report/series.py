"""The rows of the run's database that home has not read yet, as columns."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from trackside.metrics.schema import SERIES, columns_of

if TYPE_CHECKING:
    from sqlite3 import Connection

_BUSY_SECONDS = 0.5
_ROWS_AT_ONCE = 256
_FEWEST_BYTES = 1024  # even when the rest of the answer is too long: home must make progress
_LONGEST_TEXT = 100_000  # a longer one might not fit into an answer
_INFINITE = float("inf")


class Series(NamedTuple):
    """One entry per table that has new rows; `more` when some did not fit."""

    entries: list[dict[str, Any]]
    more: bool


_NOTHING = Series([], False)


def parse_rows_read(record: Any) -> dict[str, int]:
    """Return the last row that home has read per table; what is not valid counts as not read."""
    found = record if isinstance(record, dict) else {}
    return {table: found[table] for table in SERIES if isinstance(found.get(table), int)}


def read_series(database: str, job: str, rows_read: Mapping[str, int], *, room_bytes: int) -> Series:
    """Return the job's new rows, at most about `room_bytes` of JSON; none if the file is missing or unreadable."""
    if not os.path.isfile(database):
        return _NOTHING
    import sqlite3  # slow to import, needed only where there are metrics

    try:
        # Read-only: the file belongs to the training, and may belong to its trainer as well.
        connection = sqlite3.connect("file:%s?mode=ro" % _quoted(database), uri=True, timeout=_BUSY_SECONDS)
    except sqlite3.Error:
        return _NOTHING
    connection.isolation_level = None
    connection.text_factory = _text
    entries: list[dict[str, Any]] = []
    try:
        connection.execute("BEGIN")  # all tables as of one moment
        room = max(_FEWEST_BYTES, room_bytes)
        for table in SERIES:
            try:
                # A first row is taken whatever its size, or it would never be read.
                taken = _read_table(
                    connection, table, job, after=rows_read.get(table, 0), room_bytes=room, always_one=not entries
                )
            except sqlite3.OperationalError:
                continue  # a table that does not exist yet
            if taken.entry is not None:
                entries.append(taken.entry)
            if taken.more:
                return Series(entries, True)
            room -= taken.size
    except sqlite3.Error:
        pass  # not a database, or damaged: what was read so far is valid
    finally:
        connection.close()
    return Series(entries, False)


class _Taken(NamedTuple):
    entry: dict[str, Any] | None
    size: int
    more: bool


def _read_table(
    connection: Connection, table: str, job: str, *, after: int, room_bytes: int, always_one: bool
) -> _Taken:
    # A database of an older version lacks columns until a recorder or a training of this one opens it.
    there = {row[1] for row in connection.execute("PRAGMA table_info(%s)" % table)}
    names = ("id", *(name for name in columns_of(table) if name != "job_id" and name in there))
    cursor = connection.execute(
        "SELECT rowid, %s FROM %s WHERE rowid > ? AND job_id = ? ORDER BY rowid" % (", ".join(names[1:]), table),
        (after, job),
    )
    kept: list[list[Any]] = []
    used = len(json.dumps(names)) + 6 * len(names) + 64
    more = False
    while not more:
        rows = cursor.fetchmany(_ROWS_AT_ONCE)
        if not rows:
            break
        for row in rows:
            values = [_plain(value) for value in row]
            used += len(json.dumps(values))
            if used > room_bytes and (kept or not always_one):
                more = True
                break
            kept.append(values)
    cursor.close()
    if not kept:
        return _Taken(None, 0, more)
    columns = {name: [values[place] for values in kept] for place, name in enumerate(names)}
    return _Taken({"table": table, "last": kept[-1][0], "columns": columns}, used, more)


def _plain(value: Any) -> Any:
    """Return a value that JSON has: a trainer that writes to the same tables may store anything."""
    if isinstance(value, float):
        return value if -_INFINITE < value < _INFINITE else None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else None
    return value if isinstance(value, int) else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _quoted(path: str) -> str:
    """Return a path as SQLite takes it in a URI; importing urllib.parse for that takes longer than most verbs."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
