"""Reads a run's database (`aitk_db.db`). It may come from a stranger's machine: nothing in it is run or changed."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stationmaster.errors import UserError
from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table, table_of

SQLITE_MARK = b"SQLite format 3\0"

_MOST_BYTES = 4 << 30
_MOST_ROWS = 5_000_000  # of one table
_MOST_VALUE_BYTES = 1 << 20
_HEAD_BYTES = 18  # up to the size of a page
_COPIES = 3  # tries to copy a file that is being written
_FURTHEST_JUMP = 1 << 40  # rows; over what cannot be read

_JobRows = dict[str, list[Sequence[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseRows:
    """The rows of one job. `jobs` are all in the file, newest rows first; `notes` name what is missing."""

    job_id: str | None
    jobs: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    is_damaged: bool = False


def read_database(path: Path, *, job: str | None = None) -> DatabaseRows:
    """Return the rows of `job`, or of the job with the newest rows.

    Changes that are still in the file's `-wal` count. Of a file that was cut off or is damaged, all rows that can be
    read are returned. Raises UserError for a job that is not in the file.
    """
    try:
        with _opened(path) as connection:
            found = None if _ends_within_page(path) else _read_whole(connection, path, wanted=job)
    except sqlite3.Error:
        found = None
    found = found or _read_damaged(path, wanted=job)
    cut = [f"only the first {_MOST_ROWS} rows of {table.name}" for table in found.tables if len(table) >= _MOST_ROWS]
    return replace(found, notes=(*found.notes, *cut))


def folded_up_to(path: Path) -> dict[str, int]:
    """Return how far each segment of trackside's journal is in the database; nothing where that cannot be read."""
    try:
        with _opened(path) as connection:
            return dict(connection.execute("SELECT name, position FROM TracksideJournal LIMIT 10000"))
    except (sqlite3.Error, TypeError):
        return {}


def _read_whole(connection: sqlite3.Connection, path: Path, *, wanted: str | None) -> DatabaseRows:
    jobs = _jobs(connection)
    chosen = _chosen(path, jobs, wanted=wanted)
    tables = tuple(table for name in TABLES if (table := _read_table(connection, name, chosen)) is not None)
    return DatabaseRows(job_id=chosen, jobs=tuple(jobs), tables=tables, notes=())


def _read_damaged(path: Path, *, wanted: str | None) -> DatabaseRows:
    """Return what can be read, table by table. A job that was asked for may be in what is lost."""
    rows: dict[str, tuple[list[str], _JobRows]] = {}
    damaged: list[str] = []
    try:
        with _opened(path, is_damaged=True) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # accepts a file shorter than its header states
            for name in TABLES:
                try:
                    columns = _wanted_columns(connection, name)
                    if not columns:
                        continue
                    rows[name] = (columns, {})
                    if not _read_around_damage(connection, name, columns, rows[name][1]):
                        damaged.append(name)
                except sqlite3.Error:
                    damaged.append(name)
    except sqlite3.Error as problem:
        note = f"the file is damaged and no row can be read ({problem})"
        return DatabaseRows(job_id=wanted, jobs=(), tables=(), notes=(note,), is_damaged=True)
    tables = {
        job: [table for name, (columns, found) in rows.items() if (table := _table(name, columns, found.get(job)))]
        for job in dict.fromkeys(job for _, found in rows.values() for job in found)
    }
    jobs = sorted(tables, key=lambda job: (-max(map(_newest, tables[job]), default=0.0), job))
    chosen = wanted or next(iter(jobs), None)
    missing = ", ".join(damaged) or "tables that are not known"
    note = f"the file was cut off or is damaged: rows are missing in {missing}"
    return DatabaseRows(
        job_id=chosen, jobs=tuple(jobs), tables=tuple(tables.get(chosen or "", ())), notes=(note,), is_damaged=True
    )


def _read_around_damage(connection: sqlite3.Connection, name: str, columns: Sequence[str], found: _JobRows) -> bool:
    """Add all rows that can be read, by job; return whether those are all.

    At a page that cannot be read, the next rows are searched for in growing jumps.
    """
    statement = f"SELECT rowid, job_id, {_selected(columns)} FROM {name} WHERE rowid > ? ORDER BY rowid LIMIT ?"
    is_whole, last_id, jump, left = True, 0, 0, _MOST_ROWS
    while jump < _FURTHEST_JUMP:
        try:
            for row_id, job, *values in connection.execute(statement, (last_id + jump, left)):
                if row_id <= last_id:
                    return False  # the pages are out of order
                last_id, jump, left = row_id, 0, left - 1
                if isinstance(job, str) and job.isprintable():
                    found.setdefault(job, []).append(values)
            return is_whole
        except sqlite3.Error:
            is_whole, jump = False, max(1, 2 * jump)
    return is_whole


def _newest(table: Table) -> float:
    times = [time for time in table.numbers("timestamp") if time == time]
    return max(times, default=0.0)


@contextmanager
def _opened(path: Path, *, is_damaged: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the database read-only. One with a `-wal` or `-journal` is copied first: SQLite would write beside it.

    Of one that `is_damaged`, a copy without the part of a page at its end.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path} is too large: at most {_MOST_BYTES >> 30} GiB can be read")
    beside = [each for suffix in ("-wal", "-journal") if (each := path.with_name(path.name + suffix)).exists()]
    if not beside and not is_damaged:
        with _connected(f"{path.resolve().as_uri()}?mode=ro&immutable=1") as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "run.db"
        _copy_all(path, beside, copy)
        if is_damaged:
            _cut_to_whole_pages(copy)
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


def _copy_all(path: Path, beside: Sequence[Path], copy: Path) -> None:
    """Copy the database and its log; again if the training wrote meanwhile, since the two must fit together."""
    for _ in range(_COPIES):
        before = path.stat().st_mtime_ns
        shutil.copyfile(path, copy)
        try:
            for each in beside:
                shutil.copyfile(each, copy.with_name(copy.name + each.name.removeprefix(path.name)))
        except FileNotFoundError:  # the training ended just now: all of it is in the database
            continue
        if path.stat().st_mtime_ns == before:
            return


def _ends_within_page(path: Path) -> bool:
    """Return whether the last page is not whole: SQLite does not notice, and reads zeros as rows."""
    with path.open("rb") as file:
        page_bytes = _page_bytes(file.read(_HEAD_BYTES))
        return page_bytes is not None and file.seek(0, 2) % page_bytes != 0


def _cut_to_whole_pages(path: Path) -> None:
    with path.open("r+b") as file:
        page_bytes = _page_bytes(file.read(_HEAD_BYTES))
        if page_bytes is not None:
            size = file.seek(0, 2)
            file.truncate(size - size % page_bytes)


def _page_bytes(head: bytes) -> int | None:
    written = int.from_bytes(head[16:18], "big")
    return 65536 if written == 1 else written or None  # 65,536 does not fit into two bytes


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
    columns = _wanted_columns(connection, name)
    if job_id is None or not columns:
        return None
    rows = connection.execute(
        f"SELECT {_selected(columns)} FROM {name} WHERE job_id = ? ORDER BY rowid LIMIT ?", (job_id, _MOST_ROWS)
    ).fetchall()
    return _table(name, columns, rows)


def _wanted_columns(connection: sqlite3.Connection, name: str) -> list[str]:
    """Return the columns of a table that are read; none if it has no jobs."""
    known = _columns(connection, name)
    return [column for column in TABLES[name] if column in known or column == "id"] if "job_id" in known else []


def _selected(columns: Sequence[str]) -> str:
    return ", ".join("rowid" if column == "id" else column for column in columns)


def _table(name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]] | None) -> Table | None:
    if not rows:
        return None
    table = table_of(name, dict(zip(columns, zip(*rows, strict=True), strict=True)))
    return table if len(table) else None


def _columns(connection: sqlite3.Connection, name: str) -> set[str]:
    """Return the stored columns of a table; none if there is no such table, or if it is a view or a virtual table."""
    found = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND sql LIKE 'CREATE TABLE%'", (name,)
    ).fetchone()
    # table_info leaves out generated columns, whose expressions are the writer's.
    return {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} if found else set()
