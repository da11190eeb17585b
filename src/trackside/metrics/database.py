"""The run's database: opened so that a trainer that uses the same file is never kept waiting for long."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, Mapping

from trackside.metrics.schema import columns_of, complete_schema, is_complete
from trackside.sampler.sample import Sample

_BUSY_SECONDS = 2.0  # we wait for the trainer, not the other way round: our transactions take milliseconds
_LONGEST_DETAILS = 100_000


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block as one transaction that holds the write lock from its beginning."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            connection.execute("ROLLBACK")
        raise


def open_database(path: str) -> sqlite3.Connection:
    """Open the database for writing, with all its tables. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        # Fails where another process uses the file right now; any journal mode works.
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            pass
        connection.execute("PRAGMA synchronous = NORMAL")
        if not is_complete(connection):
            with transaction(connection):
                complete_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def insert_sample(connection: sqlite3.Connection, job: str, sample: Sample) -> int:
    """Insert a sample into its four tables; return the id of its row in MetricsSample."""
    at, memory = sample.timestamp, sample.memory
    fullest = max((gpu.memory_used_gb for gpu in sample.gpus if gpu.memory_used_gb is not None), default=None)
    busy = [gpu.utilization_percent for gpu in sample.gpus if gpu.utilization_percent is not None]
    utilization = sum(busy) / len(busy) if busy else None
    processes = (sample.main_process_memory_gb, sample.worker_memory_gb, sample.worker_count)
    row = (job, at, *memory, *processes, fullest, utilization, sample.cpu_utilization_percent)
    snapshot = connection.execute(_INSERT["MetricsSample"], row).lastrowid
    connection.executemany(_INSERT["GpuSample"], ((job, at, *gpu) for gpu in sample.gpus))
    connection.executemany(_INSERT["ProcessSample"], ((job, at, *process) for process in sample.processes))
    connection.execute(_INSERT["ResourceSample"], (job, at, *sample.io))
    assert snapshot is not None
    return snapshot


def insert_event(
    connection: sqlite3.Connection,
    job: str,
    timestamp: float,
    kind: str,
    details: Mapping[str, Any],
    snapshot: int | None = None,
) -> None:
    """Insert an event; a config that makes it too long is left out."""
    text = json.dumps(details, default=str)
    if len(text) > _LONGEST_DETAILS:
        text = json.dumps({name: value for name, value in details.items() if name != "config"}, default=str)
    connection.execute(_INSERT["TrainingEvent"], (job, timestamp, kind, text[:_LONGEST_DETAILS], snapshot))


def insert_values(
    connection: sqlite3.Connection, job: str, step: int, timestamp: float, values: Iterable[tuple[str, float]]
) -> None:
    connection.executemany(_INSERT["StepValue"], ((job, step, timestamp, name, value) for name, value in values))


def put_info(connection: sqlite3.Connection, job: str, values: Mapping[str, Any]) -> None:
    """Write rows of RunInfo; a key that is there already with another value is replaced."""
    for key, value in values.items():
        text = None if value is None else str(value)
        known = connection.execute("SELECT value FROM RunInfo WHERE job_id = ? AND key = ?", (job, key)).fetchone()
        if known is None or known[0] != text:
            # The new row first: a rowid that was freed would be used again, and home reads only higher ones.
            added = connection.execute(_INSERT["RunInfo"], (job, key, text)).lastrowid
            connection.execute("DELETE FROM RunInfo WHERE job_id = ? AND key = ? AND rowid < ?", (job, key, added))


def _insert(table: str) -> str:
    columns = columns_of(table)
    return "INSERT INTO %s (%s) VALUES (%s)" % (table, ", ".join(columns), ", ".join("?" * len(columns)))


_INSERT = {
    table: _insert(table)
    for table in (
        "MetricsSample", "GpuSample", "ProcessSample", "ResourceSample", "TrainingEvent", "StepValue", "RunInfo"
    )
}  # fmt: skip
