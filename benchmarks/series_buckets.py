"""Time to turn the stored steps of a long training into a chart: read from the store, decode, reduce."""

from __future__ import annotations

import random
import struct
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from _jobs import job_spec, small_dataset
from _report import report
from stationmaster.series.blocks import MOST_ROWS, block_of
from stationmaster.series.buckets import reduce_to_columns
from stationmaster.series.table import Table, table_of
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write

NAME = "series: 100,000 stored steps reduced to a chart of 1,000 columns"
BUDGET_MS = 30.0
STEPS = 100_000
COLUMNS = 1000
REPEATS = 15  # the best counts: the machine may be busy


def main() -> int:
    """Store the steps once in blocks as a merge leaves them, then make the chart again and again."""
    with tempfile.TemporaryDirectory() as folder, closing(Store(Database(f"sqlite:///{folder}/store.db"))) as store:
        store.jobs.submit(job_spec(1, small_dataset(Path(folder)), steps=STEPS))
        (lease,) = store.leases.claim("bench", limit=1, seconds=60.0)
        blocks = [_steps(first, min(MOST_ROWS, STEPS - first)) for first in range(0, STEPS, MOST_ROWS)]
        store.leases.settle(lease, Write(job=lease.job, series=tuple(block_of(table, attempt=1) for table in blocks)))
        report(NAME, min(_milliseconds(store, lease.job.id) for _ in range(REPEATS)), "ms", at_most=BUDGET_MS)
    return 0


def _milliseconds(store: Store, job_id: str) -> float:
    began = time.process_time()  # more exact than the clock on a busy computer
    table = store.series.read(job_id, "StepMetric", columns=("step", "loss"))[1]
    chart = reduce_to_columns(table.numbers("step"), table.numbers("loss"), columns=COLUMNS)
    milliseconds = 1000 * (time.process_time() - began)
    if len(chart.x) != 2 * COLUMNS:
        raise SystemExit("the chart is not complete: the measure is worthless")
    return milliseconds


def _steps(first: int, count: int) -> Table:
    chance = random.Random(first)
    ids = list(range(first + 1, first + count + 1))
    return table_of(
        "StepMetric",
        {
            "id": ids,
            "step": ids,
            "timestamp": [1.79e9 + step + chance.random() / 10 for step in ids],
            "loss": [struct.unpack("f", struct.pack("f", chance.random()))[0] for _ in ids],
            "learning_rate": [1e-4 * (1 - step / STEPS) for step in ids],
            "step_time_seconds": [1 + chance.random() / 10 for _ in ids],
        },
    )


if __name__ == "__main__":
    sys.exit(main())
