"""Values that are stored beside a job's own writes: imported ones, and those of machines without a job."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.series.blocks import Block, block_of
from stationmaster.series.table import table_of
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs
from tests.support.jobs.spine_values import spec


def sample(at: float, *, attempt: int = 1) -> Block:
    return block_of(table_of("MetricsSample", {"id": [1], "timestamp": [at]}), attempt=attempt)


def series_bytes(store: Store, job_id: str) -> int:
    with store.database.read() as connection:
        return int(connection.execute(sa.select(jobs.c.series_bytes).where(jobs.c.id == job_id)).scalar_one())


def test_an_import_replaces_the_one_before_and_is_counted(store: Store) -> None:
    store.jobs.submit(spec("a"))
    store.series.import_blocks("a", [sample(1.0, attempt=0), sample(2.0, attempt=0)])
    store.series.import_blocks("a", [sample(3.0, attempt=0)])
    assert store.series.read("a", "MetricsSample")[0].values("timestamp") == [3.0]
    assert series_bytes(store, "a") == len(sample(3.0, attempt=0).data)


def test_an_import_leaves_what_was_recorded(store: Store) -> None:
    store.jobs.submit(spec("a"))
    store.series.import_blocks("a", [sample(1.0, attempt=1)])
    store.series.import_blocks("a", [sample(2.0, attempt=0)])
    stored = store.series.read("a", "MetricsSample")
    assert {attempt: table.values("timestamp") for attempt, table in stored.items()} == {0: [2.0], 1: [1.0]}


def test_values_of_a_machine_are_limited(store: Store) -> None:
    limit = len(sample(1.0).data) + len(sample(2.0).data)
    stored = [store.series.add_of_machine("vastai/7", [sample(float(at))], cap_bytes=limit) for at in (1, 2, 3)]
    assert stored == [True, True, False]
    assert store.series.read("vastai/7", "MetricsSample")[1].values("timestamp") == [1.0, 2.0]


def test_old_machines_are_found_to_thin_and_to_clear_but_no_jobs(store: Store) -> None:
    store.jobs.submit(spec("a"))
    store.series.import_blocks("a", [sample(1.0)])
    store.series.add_of_machine("vastai/7", [sample(100.0), sample(200.0)], cap_bytes=10_000)
    store.series.add_of_machine("vastai/8", [sample(900.0)], cap_bytes=10_000)
    assert store.series.machines_to_thin(last_before=500.0, limit=10) == ["vastai/7"]
    assert sorted(store.series.machines_to_clear(last_before=1000.0, limit=10)) == ["vastai/7", "vastai/8"]
    store.series.thin("vastai/7")
    assert store.series.machines_to_thin(last_before=500.0, limit=10) == []
    store.series.clear("vastai/7")
    assert store.series.machines_to_clear(last_before=1000.0, limit=10) == ["vastai/8"]


def test_the_blocks_of_a_machine_can_be_merged(store: Store) -> None:
    for at in range(20):
        store.series.add_of_machine("vastai/7", [sample(float(at))], cap_bytes=100_000)
    assert store.series.jobs_to_merge(limit=5) == ["vastai/7"]
    assert store.series.merge("vastai/7") > 0
    assert store.series.read("vastai/7", "MetricsSample")[1].values("timestamp") == [float(at) for at in range(20)]
