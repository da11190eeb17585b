"""Measured values: blocks that are written with the job, read by table and time, merged, thinned and deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa

from stationmaster.errors import LeaseLost
from stationmaster.model import State
from stationmaster.series.blocks import Block, block_of
from stationmaster.series.table import Table, joined, table_of
from stationmaster.store.leases import Lease, LeasedWrite
from stationmaster.store.store import Store
from stationmaster.store.tables import series_blocks
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import spec


def lease_on(store: Store, job_id: str = "a") -> Lease:
    store.jobs.submit(spec(job_id))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    return lease


def steps(first: int, count: int = 10) -> Table:
    ids = list(range(first, first + count))
    return table_of(
        "StepMetric",
        {"id": ids, "step": ids, "timestamp": [1000.0 + step for step in ids], "loss": [1 / step for step in ids]},
    )


def info(number: int) -> Table:
    return table_of("RunInfo", {"id": [number], "key": ["platform"], "value": [f"p{number}"]})


def block(table: Table, attempt: int = 1) -> Block:
    return block_of(table, attempt=attempt)


def write(store: Store, lease: Lease, *blocks: Block) -> Lease:
    return store.leases.record(lease, Write(job=lease.job, series=blocks))


def end(store: Store, lease: Lease) -> None:
    store.leases.settle(lease, Write(job=replace(lease.job, state=State.ENDED), due_in=None))


def blocks_stored(store: Store) -> int:
    with store.database.read() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(series_blocks)).scalar_one())


def test_rows_are_read_as_they_were_written(store: Store) -> None:
    lease = lease_on(store)
    lease = write(store, lease, block(steps(1)), block(info(1)))
    write(store, lease, block(steps(11)))
    assert store.series.read("a", "StepMetric") == {1: steps(1, 20)}
    assert store.series.read("a", "RunInfo") == {1: info(1)}
    assert store.series.read("a", "GpuSample") == {}
    assert store.series.read("b", "StepMetric") == {}


def test_only_the_wanted_columns_are_read(store: Store) -> None:
    write(store, lease_on(store), block(steps(1)))
    table = store.series.read("a", "StepMetric", columns=("step", "loss"))[1]
    assert set(table.columns) == {"step", "loss"}


def test_attempts_are_apart(store: Store) -> None:
    lease = write(store, lease_on(store), block(steps(1), attempt=1))
    write(store, lease, block(steps(1, 5), attempt=2))
    assert store.series.read("a", "StepMetric") == {1: steps(1), 2: steps(1, 5)}
    assert store.series.read("a", "StepMetric", attempt=2) == {2: steps(1, 5)}


def test_all_tables_are_read_at_once_and_of_the_wanted_attempts_alone(store: Store) -> None:
    lease = write(store, lease_on(store), block(steps(1)), block(info(1)), block(steps(11)))
    write(store, lease, block(steps(1, 5), attempt=2))
    assert store.series.tables("a") == {1: [info(1), steps(1, 20)], 2: [steps(1, 5)]}
    assert store.series.tables("a", attempts=(0, 2)) == {2: [steps(1, 5)]}
    assert store.series.tables("b") == {}


def test_a_table_of_a_newer_version_and_a_damaged_block_hide_no_other(store: Store) -> None:
    newer, damaged = replace(block(steps(1)), name="NewTable"), replace(block(steps(11)), data=b"no table")
    write(store, lease_on(store), newer, damaged, block(steps(21)), replace(block(info(1)), data=b"no table"))
    assert store.series.tables("a") == {1: [steps(21)]}


def test_blocks_outside_a_range_of_time_are_not_read(store: Store) -> None:
    write(store, lease_on(store), *(block(steps(first)) for first in (1, 11, 21)), block(info(1)))
    assert store.series.read("a", "StepMetric", start=1012.0, end=1015.0) == {1: steps(11)}
    assert store.series.read("a", "StepMetric", start=1020.0) == {1: steps(11, 20)}
    assert store.series.read("a", "StepMetric", end=900.0) == {}
    assert store.series.read("a", "RunInfo", start=1012.0) == {1: info(1)}


def test_contents_tell_what_there_is(store: Store) -> None:
    lease = write(store, lease_on(store), block(steps(1)), block(info(1)))
    write(store, lease, block(steps(11)))
    facts, metrics = store.series.contents("a")
    assert (facts.name, facts.row_count, facts.first_at) == ("RunInfo", 1, None)
    assert (metrics.attempt, metrics.name, metrics.row_count) == (1, "StepMetric", 20)
    assert (metrics.first_at, metrics.last_at, metrics.thinned) == (1001.0, 1020.0, False)
    assert metrics.size == len(block(steps(1)).data) + len(block(steps(11)).data)


def test_several_jobs_write_in_one_transaction(store: Store) -> None:
    leases = [lease_on(store, job_id) for job_id in ("a", "b")]
    store.leases.write(
        [
            LeasedWrite(lease=lease, write=Write(job=lease.job, series=(block(steps(place)), block(info(place)))))
            for place, lease in enumerate(leases, start=1)
        ]
    )
    assert store.series.read("b", "StepMetric") == {1: steps(2)}
    assert store.series.read("a", "RunInfo") == {1: info(1)}


def test_a_worker_that_lost_its_lease_writes_no_rows(store: Store, open_store: Callable[..., Store]) -> None:
    lease = lease_on(store)
    open_store(later=60).leases.claim("other", limit=1, seconds=20)
    with pytest.raises(LeaseLost):
        write(store, lease, block(steps(1)))
    assert store.series.read("a", "StepMetric") == {}


def test_rows_beyond_the_limit_are_dropped_and_counted(open_store: Callable[..., Store]) -> None:
    store = open_store(series_cap_bytes=1500)
    lease, other = lease_on(store, "a"), lease_on(store, "b")
    for first in range(1, 101, 10):
        lease = write(store, lease, block(steps(first)))
    kept = len(store.series.read("a", "StepMetric")[1])
    assert 0 < kept < 100
    assert store.series.dropped_rows("a") == 100 - kept
    write(store, other, block(steps(1)))
    assert store.series.read("b", "StepMetric") == {1: steps(1)}
    assert store.series.dropped_rows("b") == 0


def test_small_blocks_become_one_without_losing_a_row(store: Store) -> None:
    lease = lease_on(store)
    for first in range(1, 401, 10):
        lease = write(store, lease, block(steps(first)), block(steps(first), attempt=2))
    assert store.series.jobs_to_merge(limit=10) == ["a"]
    end(store, lease)
    assert store.series.merge("a") == 78
    assert blocks_stored(store) == 2
    assert store.series.read("a", "StepMetric") == {1: steps(1, 400), 2: steps(1, 400)}
    assert store.series.jobs_to_merge(limit=10) == []
    assert store.series.merge("a") == 0


def test_rows_that_arrive_after_a_merge_follow_it(store: Store) -> None:
    lease = lease_on(store)
    for first in range(1, 201, 10):
        lease = write(store, lease, block(steps(first)))
    store.series.merge("a")
    write(store, lease, block(steps(201)))
    assert store.series.read("a", "StepMetric") == {1: steps(1, 210)}


def test_rows_that_arrive_while_blocks_are_merged_are_kept(store: Store, open_store: Callable[..., Store]) -> None:
    lease = lease_on(store)
    for first in range(1, 201, 10):
        lease = write(store, lease, block(steps(first)))
    # A merge reads, then replaces what it read: between the two, rows arrive and another worker merges as well.
    seqs, blocks = read_blocks(store)
    lease = write(store, lease, block(steps(201)))
    open_store().series.merge("a")
    write(store, lease, block(steps(211)))
    whole = block(joined([each.table() for each in blocks]))
    assert not store.series.replace_blocks("a", seqs, blocks, whole, is_thinned=False)
    assert store.series.read("a", "StepMetric") == {1: steps(1, 220)}


def read_blocks(store: Store) -> tuple[list[int], list[Block]]:
    with store.database.read() as connection:
        seqs = list(connection.execute(sa.select(series_blocks.c.seq).order_by(series_blocks.c.seq)).scalars())
    return seqs, store.series.blocks("a", "StepMetric")


def test_merging_gives_the_job_room_again(open_store: Callable[..., Store]) -> None:
    small = len(block(steps(1)).data)
    store = open_store(series_cap_bytes=25 * small)
    lease = lease_on(store)
    for first in range(1, 191, 10):
        lease = write(store, lease, block(steps(first)))
    store.series.merge("a")
    for first in range(191, 291, 10):
        lease = write(store, lease, block(steps(first)))
        store.series.merge("a")
    assert store.series.dropped_rows("a") == 0
    assert store.series.read("a", "StepMetric") == {1: steps(1, 290)}


def test_an_unreadable_block_does_not_hide_the_others(store: Store) -> None:
    lease = lease_on(store)
    broken = replace(block(steps(11)), data=b"\x07 from the future")
    write(store, lease, block(steps(1)), broken, block(steps(21)))
    assert store.series.read("a", "StepMetric")[1].values("step") == [*range(1, 11), *range(21, 31)]
    assert store.series.merge("a") == 0
    store.series.thin("a")
    assert blocks_stored(store) == 3


def test_values_of_a_job_that_ended_long_ago_are_thinned_once(store: Store, open_store: Callable[..., Store]) -> None:
    lease = write(store, lease_on(store), block(steps(1, 30_000)), block(steps(30_001, 30_000)), block(info(1)))
    running = lease_on(store, "b")
    write(store, running, block(steps(1)))
    end(store, lease)
    now = store.now()
    assert store.series.jobs_to_thin(ended_before=now - 60, limit=10) == []
    assert store.series.jobs_to_thin(ended_before=now + 60, limit=10) == ["a"]
    before = store.series.contents("a")
    store.series.thin("a")
    after = store.series.contents("a")
    assert [each.thinned for each in after] == [True, True]
    assert after[1].size < before[1].size / 5
    thin = store.series.read("a", "StepMetric")[1]
    assert thin.values("step")[0] == 1
    assert thin.values("step")[-1] == 60_000
    assert store.series.read("a", "RunInfo") == {1: info(1)}
    assert store.series.jobs_to_thin(ended_before=now + 60, limit=10) == []


def test_values_are_deleted_with_their_job_or_before_it(store: Store) -> None:
    lease = write(store, lease_on(store), block(steps(1)))
    end(store, lease)
    assert store.series.jobs_to_clear(ended_before=store.now() + 60, limit=10) == ["a"]
    store.series.clear("a")
    assert store.series.read("a", "StepMetric") == {}
    assert store.series.jobs_to_clear(ended_before=store.now() + 60, limit=10) == []
    lease = write(store, lease_on(store, "b"), block(steps(1)))
    end(store, lease)
    store.jobs.remove("b")
    assert blocks_stored(store) == 0
