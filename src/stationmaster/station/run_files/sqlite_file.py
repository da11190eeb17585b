"""Reads a run's database (`aitk_db.db`). It may come from a stranger's machine: nothing in it is run or changed."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stationmaster.errors import UserError
from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table, table_of

SQLITE_MARK = b"SQLite format 3\0"

_MOST_BYTES = 4 << 30
_MOST_ROWS = 5_000_000  # of one table
_MOST_VALUE_BYTES = 1 << 20
_COPIES = 3  # tries to copy a file that is being written
_DAMAGED = "the file is damaged, or not a run's database"


def read_database(path: Path, *, job: str | None = None) -> tuple[str | None, list[Table], tuple[str, ...]]:
    """Return the job's id, its tables, and notes on what was left out.

    Without `job`, that with the newest rows. Changes that are still in the file's `-wal` count. Raises UserError.
    """
    try:
        with _opened(path) as connection:
            jobs = _jobs(connection)
            chosen = _chosen(path, jobs, wanted=job)
            tables = [table for name in TABLES if (table := _read_table(connection, name, chosen)) is not None]
    except sqlite3.Error as problem:
        raise UserError(f"{path} cannot be read: {problem}", hint=_DAMAGED) from problem
    others = [one for one in jobs if one != chosen]
    notes = [f"the file also holds {', '.join(others[:5])}; choose one with --job"] if others else []
    notes += [f"only the first {_MOST_ROWS} rows of {table.name}" for table in tables if len(table) >= _MOST_ROWS]
    return chosen, tables, tuple(notes)


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database read-only. One with a `-wal` is copied first: SQLite would write beside the original."""
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path} is too large: at most {_MOST_BYTES >> 30} GiB can be read")
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        with _connected(f"{path.resolve().as_uri()}?mode=ro&immutable=1") as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run.db"
        _copy_both(path, wal, copy)
        with _connected(f"{copy.as_uri()}?mode=rw") as connection:
            yield connection


@contextmanager
def _connected(address: str) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(address, uri=True)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_VALUE_BYTES)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA cell_size_check=ON")
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        yield connection
    finally:
        connection.close()


def _copy_both(path: Path, wal: Path, copy: Path) -> None:
    """Copy the database and its log; again if the training wrote meanwhile, since the two must fit together."""
    for _ in range(_COPIES):
        before = path.stat().st_mtime_ns
        shutil.copyfile(path, copy)
        try:
            shutil.copyfile(wal, copy.with_name(copy.name + "-wal"))
        except FileNotFoundError:  # the training ended just now: all of it is in the database
            continue
        if path.stat().st_mtime_ns == before:
            return


def _jobs(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of all jobs in the file, that with the newest rows first."""
    newest: dict[str, float] = {}
    for name in TABLES:
        known = _columns(connection, name)
        if "job_id" not in known:
            continue
        time = "max(timestamp)" if "timestamp" in known else "0"
        for job_id, at in connection.execute(f"SELECT job_id, {time} FROM {name} GROUP BY job_id LIMIT 1000"):
            if isinstance(job_id, str):
                newest[job_id] = max(newest.get(job_id, 0.0), at if isinstance(at, int | float) else 0.0)
    return sorted(newest, key=lambda job_id: (-newest[job_id], job_id))


def _chosen(path: Path, jobs: Sequence[str], *, wanted: str | None) -> str | None:
    if wanted is None:
        return jobs[0] if jobs else None
    if wanted not in jobs:
        there = ", ".join(jobs[:5]) or "no job"
        raise UserError(f"{path} has no job {wanted}", hint=f"it holds {there}")
    return wanted


def _read_table(connection: sqlite3.Connection, name: str, job_id: str | None) -> Table | None:
    known = _columns(connection, name)
    if "job_id" not in known or job_id is None:
        return None
    wanted = [column for column in TABLES[name] if column in known or column == "id"]
    selected = ", ".join("rowid" if column == "id" else column for column in wanted)
    rows = connection.execute(
        f"SELECT {selected} FROM {name} WHERE job_id = ? ORDER BY rowid LIMIT ?", (job_id, _MOST_ROWS)
    ).fetchall()
    if not rows:
        return None
    table = table_of(name, dict(zip(wanted, zip(*rows, strict=True), strict=True)))
    return table if len(table) else None


def _columns(connection: sqlite3.Connection, name: str) -> set[str]:
    """Return the stored columns of a table; none if there is no such table, or if it is a view or a virtual table."""
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE TABLE%'", (name,)
    ).fetchone()
    # table_info leaves out generated columns, whose expressions are the writer's.
    return {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} if found else set()
