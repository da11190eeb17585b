"""Upkeep of measured values: what is due is merged, thinned and deleted, and nothing else."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.control.periodic.series_upkeep import keep_up_series
from stationmaster.model import State
from stationmaster.series.blocks import block_of
from stationmaster.series.table import Table, table_of
from stationmaster.settings import MetricsSettings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import spec

DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a job that runs and one that has ended, each with many small blocks."""
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as store:
        for job_id, state in (("ended", State.ENDED), ("running", State.EXECUTING)):
            store.jobs.submit(spec(job_id))
            (lease,) = store.leases.claim("w", limit=1, seconds=20)
            blocks = tuple(block_of(steps(first), attempt=1) for first in range(1, 6001, 300))
            write = Write(job=replace(lease.job, state=state), due_in=None, series=blocks)
            store.leases.settle(lease, write)
    return tmp_path


def steps(first: int) -> Table:
    ids = list(range(first, first + 300))
    return table_of(
        "StepMetric", {"id": ids, "step": ids, "timestamp": [1.0 * step for step in ids], "loss": [0.5] * 300}
    )


async def keep_up(path: Path, *, days_later: float = 0.0, **settings: Any) -> dict[str, int]:
    """Run it once; return how many rows of each job are left."""

    def nothing(*_args: Any) -> Any:
        raise AssertionError("upkeep needs no machine and no recipe")

    with closing(Store(Database(f"sqlite:///{path}/store.db", clock_offset=days_later * DAY))) as store:
        world = World(
            store=store,
            providers={},
            connect=nothing,
            find_recipe=nothing,
            secrets=nothing,
            home=path,
            trackside=path / "trackside.pyz",
            policy=Policy(metrics=MetricsSettings(**settings)),
        )
        try:
            await keep_up_series(world)
        finally:
            await world.close()
        return {
            job_id: sum(len(table) for table in store.series.read(job_id, "StepMetric").values())
            for job_id in ("ended", "running")
        }


def blocks_of(path: Path, job_id: str) -> int:
    with closing(Store(Database(f"sqlite:///{path}/store.db"))) as store:
        return len(store.series.blocks(job_id, "StepMetric"))


@asynchronous
async def test_small_blocks_are_merged_and_no_row_is_lost(path: Path) -> None:
    assert await keep_up(path) == {"ended": 6000, "running": 6000}
    assert (blocks_of(path, "ended"), blocks_of(path, "running")) == (1, 1)


@asynchronous
async def test_values_of_ended_jobs_are_thinned_when_their_time_is_over(path: Path) -> None:
    assert await keep_up(path, days_later=13) == {"ended": 6000, "running": 6000}
    left = await keep_up(path, days_later=15)
    assert left["running"] == 6000
    assert 0 < left["ended"] <= 4000
    assert await keep_up(path, days_later=400) == left


@asynchronous
async def test_nothing_is_thinned_or_deleted_where_the_settings_say_never(path: Path) -> None:
    left = await keep_up(path, days_later=4000, full_resolution=0.0, retention=0.0)
    assert left == {"ended": 6000, "running": 6000}


@asynchronous
async def test_values_of_ended_jobs_are_deleted_after_the_set_time(path: Path) -> None:
    assert (await keep_up(path, days_later=29, retention=30 * DAY))["ended"] > 0
    assert await keep_up(path, days_later=31, retention=30 * DAY) == {"ended": 0, "running": 6000}


@asynchronous
async def test_a_machine_without_a_job_counts_from_its_last_value(path: Path) -> None:
    with closing(Store(Database(f"sqlite:///{path}/store.db"))) as store:
        now = store.now()
        ids = list(range(6000))
        samples = table_of(
            "InstanceSample",
            {"id": ids, "timestamp": [now - step for step in ids], "gpu_percent": [step % 7 for step in ids]},
        )
        store.series.add_of_machine("vastai/7", [block_of(samples, attempt=1)], cap_bytes=10_000_000)
    kept = {}
    for days in (13, 15, 29, 31):
        await keep_up(path, days_later=days, retention=30 * DAY)
        with closing(Store(Database(f"sqlite:///{path}/store.db"))) as store:
            kept[days] = sum(each.row_count for each in store.series.contents("vastai/7"))
    assert kept[13] == 6000
    assert 0 < kept[15] == kept[29] < 6000
    assert kept[31] == 0
