"""Repeats a worker's writes: with the store, and with a bare SQL loop without any code of ours.

The loop has its statements as text and its rows ready, JSON included, and makes the same changes on the same engine
with the same pragmas: each write in its own transaction, as a loop does, or in the transactions that the worker's
writes shared. The difference to the store is the overhead of Stationmaster: encoding, guarding, building statements.
"""

from __future__ import annotations

import gc
import re
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg

from stationmaster.settings import DEFAULT_LOG_CAP_BYTES, DEFAULT_METRICS_CAP_BYTES
from stationmaster.store import checkpoints, events, logs, readings, runs, series
from stationmaster.store.codec import rental_to_row, shallow
from stationmaster.store.job_texts import texts_of
from stationmaster.store.leased_writes import WORKER_COLUMNS, job_values
from stationmaster.store.leases import Lease, LeasedWrite, Leases
from stationmaster.store.models import model_to_row
from stationmaster.store.store import Store

Row = Mapping[str, Any]
Batch = Sequence[LeasedWrite]

_PLACE = re.compile(r"<(\w+)>")  # of a value in a statement; each driver writes it in its own way
_UPDATE_JOB = f"""
UPDATE jobs SET {", ".join(f"{name} = <b_{name}>" for name in WORKER_COLUMNS)},
    lease_owner = CASE WHEN <b_keep> THEN lease_owner END,
    lease_until = CASE WHEN <b_keep> THEN lease_until END,
    version = version + <b_new_events>,
    log_bytes = log_bytes + <b_logged>,
    series_bytes = series_bytes + <b_measured>,
    series_dropped = series_dropped
        + CASE WHEN series_bytes >= {DEFAULT_METRICS_CAP_BYTES} THEN <b_measured_rows> ELSE 0 END,
    due_at = {{now}} + <b_due_in>,
    ended_at = CASE WHEN <b_ended> THEN coalesce(ended_at, {{now}}) END
WHERE id = <b_id> AND lease_token = <b_token>
RETURNING version, log_bytes, series_bytes, desired, desired_seq, {{now}},
    EXISTS (SELECT * FROM interests WHERE interests.job_id = jobs.id AND interests.until > {{now}})
"""
_CLEAR_ALERT = "UPDATE alerts SET cleared_at = {now} WHERE job_id = <job_id> AND kind = <kind> AND cleared_at IS NULL"
_KEYS = {
    "rentals": "label",
    "cost_lines": "rental_label, kind",
    "checkpoints": "job_id, attempt, path",
    "past_runs": "job_id",
    "models": "slug",
}


class RecordingLeases(Leases):
    """Leases of the store that record what each transaction wrote."""

    def __init__(self, store: Store) -> None:
        caps = {"log_cap_bytes": DEFAULT_LOG_CAP_BYTES, "series_cap_bytes": DEFAULT_METRICS_CAP_BYTES}
        super().__init__(store.database, **caps)
        self.batches: list[Batch] = []

    def write(self, entries: Sequence[LeasedWrite]) -> list[Lease | None]:
        after = super().write(entries)
        self.batches.append(tuple(entries))
        return after


def seconds_by_the_store(store: Store, batches: Sequence[Batch]) -> float:
    """Seconds that the store takes for a worker's transactions; its jobs are claimed once and not begun."""
    tokens = _claimed(store)
    again = [tuple(_with_token(entry, tokens) for entry in batch) for batch in batches]
    clock = _clock(store)
    set_aside()
    began = clock()
    for batch in again:
        store.leases.write(batch)
    return clock() - began


def seconds_by_a_bare_loop(store: Store, batches: Sequence[Batch], *, shares_transactions: bool) -> float:
    """The same with the driver alone, on the store's database, whose jobs are claimed once and not begun."""
    tokens = _claimed(store)
    rows = _JobRows()
    transactions = batches if shares_transactions else [(entry,) for batch in batches for entry in batch]
    ready = [rows.of_batch([_with_token(entry, tokens) for entry in batch]) for batch in transactions]
    clock = _clock(store)
    if store.database.is_sqlite:
        return _seconds_on_sqlite(str(store.database.url.database), ready, clock)
    url = store.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    return _seconds_on_postgresql(url, ready, clock)


def _clock(store: Store) -> Callable[[], float]:
    """Processor time for SQLite, which runs in our process: more exact than the clock on a busy computer."""
    return time.process_time if store.database.is_sqlite else time.perf_counter


def set_aside() -> None:
    """Keep the garbage collector away from what exists before a measurement."""
    gc.collect()
    gc.freeze()


def _claimed(store: Store) -> dict[str, int]:
    return {lease.job.id: lease.token for lease in store.leases.claim("bench", limit=1_000_000, seconds=3600.0)}


def _with_token(entry: LeasedWrite, tokens: Mapping[str, int]) -> LeasedWrite:
    return replace(entry, lease=replace(entry.lease, token=tokens[entry.lease.job.id]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """One transaction: updates of jobs, then rows by table."""

    jobs: Sequence[Row]
    rows: Mapping[str, Sequence[Row]]
    cleared: Sequence[Row]


@dataclass(slots=True)
class _JobRows:
    """Rows as the store would make them; keeps count of each job's version and the length of its log."""

    versions: dict[str, int] = field(default_factory=dict)
    log_bytes: dict[str, int] = field(default_factory=dict)

    def of_batch(self, batch: Sequence[LeasedWrite]) -> _Ready:
        found: dict[str, list[Row]] = {}
        for entry in batch:
            for table, rows in self._of_entry(entry).items():
                found.setdefault(table, []).extend(rows)
        cleared = [
            {"job_id": entry.lease.job.id, "kind": kind} for entry in batch for kind in entry.write.cleared_alerts
        ]
        return _Ready(
            jobs=[job_values(entry, texts_of(entry.write.job, entry.lease.texts)) for entry in batch],
            rows={table: rows for table, rows in found.items() if rows},
            cleared=cleared,
        )

    def _of_entry(self, entry: LeasedWrite) -> dict[str, Sequence[Row]]:
        job, write, now = entry.lease.job.id, entry.write, entry.lease.now
        assert not any((write.ledger, write.alerts, write.bad_machines)), "the loop does not know these"
        version = self.versions[job] = self.versions.get(job, 1) + len(write.events)
        length = self.log_bytes[job] = self.log_bytes.get(job, 0) + sum(len(chunk.data) for chunk in write.logs)
        return {
            "events": events.rows(job, write.events, version=version, now=now),
            "log_chunks": logs.rows(job, write.logs, log_bytes=length, cap_bytes=DEFAULT_LOG_CAP_BYTES, now=now),
            "readings": readings.rows(job, write.readings),
            "series_blocks": series.rows(job, write.series, series_bytes=0, cap_bytes=DEFAULT_METRICS_CAP_BYTES),
            "rentals": [rental_to_row(rental) for rental in write.rentals],
            "cost_lines": [shallow(line) for line in write.costs],
            "checkpoints": checkpoints.rows_of(job, write.checkpoints),
            "past_runs": [runs.row_of(job, write.past_run, now=now)] if write.past_run else [],
            "models": [model_to_row(model) for model in write.models],
        }


def _insert(table: str, names: Sequence[str]) -> str:
    text = f"INSERT INTO {table} ({', '.join(map(_quoted, names))}) VALUES ({', '.join(f'<{name}>' for name in names)})"
    if table not in _KEYS:
        return text
    others = ", ".join(f"{name} = excluded.{name}" for name in names if name not in _KEYS[table].split(", "))
    return f"{text} ON CONFLICT ({_KEYS[table]}) DO UPDATE SET {others}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _seconds_on_sqlite(path: str, ready: Sequence[_Ready], clock: Callable[[], float]) -> float:
    def bound(text: str) -> str:
        return _PLACE.sub(r":\1", text).format(now="((julianday('now') - 2440587.5) * 86400.0)")

    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        cursor = connection.cursor()

        def update(text: str, jobs: Sequence[Row]) -> int:
            return sum(cursor.execute(text, job).fetchone() is not None for job in jobs)

        return _seconds(cursor, ready, bound, update, clock=clock, begin="BEGIN IMMEDIATE")
    finally:
        connection.close()


def _seconds_on_postgresql(url: str, ready: Sequence[_Ready], clock: Callable[[], float]) -> float:
    def bound(text: str) -> str:
        clock = "cast(extract(epoch from clock_timestamp()) as double precision)"
        return _PLACE.sub(r"%(\1)s", text).format(now=clock)

    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:

        def update(text: str, jobs: Sequence[Row]) -> int:
            cursor.executemany(text, jobs, returning=True)  # all of them in one round trip
            updated = int(cursor.fetchone() is not None)
            while cursor.nextset():
                updated += cursor.fetchone() is not None
            return updated

        return _seconds(cursor, ready, bound, update, clock=clock, begin="BEGIN", news="NOTIFY stationmaster_news")


def _seconds(
    cursor: Any,
    ready: Sequence[_Ready],
    bound: Callable[[str], str],
    update: Callable[[str, Sequence[Row]], int],
    *,
    clock: Callable[[], float],
    begin: str,
    news: str | None = None,
) -> float:
    """The loop itself."""
    inserts = {table: bound(_insert(table, tuple(rows[0]))) for batch in ready for table, rows in batch.rows.items()}
    update_job, clear_alert = bound(_UPDATE_JOB), bound(_CLEAR_ALERT)
    set_aside()
    began = clock()
    for batch in ready:
        cursor.execute(begin)
        if update(update_job, batch.jobs) != len(batch.jobs):
            raise SystemExit("a job was not updated: the measure is worthless")
        for table, rows in batch.rows.items():
            cursor.executemany(inserts[table], rows)
        if batch.cleared:
            cursor.executemany(clear_alert, batch.cleared)
        if news is not None and ("events" in batch.rows or "log_chunks" in batch.rows):
            cursor.execute(news)
        cursor.execute("COMMIT")
    return clock() - began
