"""Room in the store for the measured values of a training, written and merged as a worker does it.

The training makes a step per second and is sampled every 5 seconds; a worker reads its rows once a minute.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _jobs import job_spec, small_dataset
from _report import report
from stationmaster.series.blocks import block_of
from stationmaster.series.table import Table
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.series.simulated_run import simulated_run

HOURS = 6
POLLS_PER_MERGE = 20
MOST_MB_PER_HOUR = 0.2
MOST_GB_PER_MONTH = 2.5
GPUS = 20


def main() -> int:
    """Write six hours, and measure what the database grew by."""
    with tempfile.TemporaryDirectory() as folder, closing(Store(Database(f"sqlite:///{folder}/store.db"))) as store:
        store.jobs.submit(job_spec(1, small_dataset(Path(folder)), steps=HOURS * 3600))
        before = _bytes_used(store)
        _write(store, simulated_run(HOURS))
        per_hour = (_bytes_used(store) - before) / HOURS
    report("series: room in the store per training hour", per_hour / 1e6, "MB", at_most=MOST_MB_PER_HOUR)
    month = per_hour * 24 * 30 * GPUS / 1e9
    report("series: room for a month of 20 GPUs that train all day", month, "GB", at_most=MOST_GB_PER_MONTH)
    return 0


def _write(store: Store, tables: list[Table]) -> None:
    (lease,) = store.leases.claim("bench", limit=1, seconds=3600.0)
    for number, poll in enumerate(_polls(tables), start=1):
        blocks = tuple(block_of(table, attempt=1) for table in poll if len(table))
        lease = store.leases.record(lease, Write(job=lease.job, series=blocks))
        if number % POLLS_PER_MERGE == 0:
            store.series.merge(lease.job.id)


def _polls(tables: list[Table]) -> Iterator[list[Table]]:
    """What each of a worker's looks finds new: a part of each table."""
    polls = HOURS * 60
    for number in range(polls):
        yield [_part(table, number / polls, (number + 1) / polls) for table in tables]


def _part(table: Table, begin: float, end: float) -> Table:
    rows = slice(int(begin * len(table)), int(end * len(table)))
    return Table(table.name, {name: held[rows] for name, held in table.columns.items()})


def _bytes_used(store: Store) -> int:
    """Size of the database without its free pages, which the next rows fill."""
    with store.database.read() as connection:
        count, free, size = (
            int(connection.execute(sa.text(f"PRAGMA {name}")).scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (count - free) * size


if __name__ == "__main__":
    sys.exit(main())
