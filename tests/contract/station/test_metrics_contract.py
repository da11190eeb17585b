"""The series of a job, as every face gets them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from stationmaster.errors import NotFound, UserError
from stationmaster.series.blocks import block_of
from stationmaster.series.table import Table, table_of
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.station_kinds import every_station
from tests.support.programs import ROOT

FILES = ROOT / "tests" / "fixtures" / "series"


def steps(first: int, count: int, *, scale: float = 1.0) -> Table:
    numbers = [*range(first, first + count)]
    return table_of(
        "StepMetric",
        {
            "id": numbers,
            "step": numbers,
            "timestamp": [1000.0 + step for step in numbers],
            "loss": [scale / step for step in numbers],
        },
    )


def gpu(*values: float) -> Table:
    return table_of(
        "GpuSample",
        {
            "id": [*range(1, len(values) + 1)],
            "timestamp": [1000.0 + 5 * place for place in range(len(values))],
            "gpu_index": [0] * len(values),
            "memory_used_gb": [*values],
        },
    )


def recorded(store: Store, job_id: str, **attempts: list[Table]) -> None:
    """Submit a job and store tables of its attempts, named a1, a2 and so on."""
    store.jobs.submit(spec(job_id))
    (lease,) = store.leases.claim("w", limit=1, seconds=20)
    blocks = [
        block_of(table, attempt=int(name.removeprefix("a"))) for name, tables in attempts.items() for table in tables
    ]
    store.leases.record(lease, Write(job=lease.job, series=tuple(blocks)))


def test_a_trained_job_has_its_loss_by_step(finished: LocalWorld) -> None:
    metrics = finished.station.metrics
    assert metrics.find("cats") == metrics.find("done") == "done"
    assert "loss" in metrics.contents("done").series
    (loss,) = metrics.series("done", ["loss"])
    assert loss.axis == "step"
    assert loss.points.x[-1] == 20
    assert loss.points.exact
    summary = metrics.summary("done")
    assert (summary.last_step, summary.series[0].name) == (20, "loss")


@every_station
def test_the_log_gives_the_steps_of_a_job_that_recorded_none(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[gpu(1.0, 2.0)])
    assert world.station.metrics.contents("a").series == ("gpu0.memory_used_gb",)
    assert not world.station.metrics.contents("a").from_log


@every_station
def test_contents_name_the_tables_of_each_attempt(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[steps(1, 5), gpu(1.0)], a2=[steps(3, 2)])
    contents = world.station.metrics.contents("a")
    assert [(table.name, table.attempt, table.rows) for table in contents.tables] == [
        ("GpuSample", 1, 1), ("StepMetric", 1, 5), ("StepMetric", 2, 2),
    ]  # fmt: skip
    assert contents.dropped_rows == 0


@every_station
def test_a_later_attempt_wins_from_the_step_it_resumed_at(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[steps(1, 10)], a2=[steps(4, 3, scale=100.0)])
    (loss,) = world.station.metrics.series("a", ["loss"])
    assert loss.points.x == [1, 2, 3, 4, 5, 6]
    assert loss.points.y == [1, 1 / 2, 1 / 3, 25, 20, 100 / 6]
    assert world.station.metrics.summary("a").last_step == 6


@every_station
def test_a_chart_gets_two_points_per_column_and_all_of_them_when_it_zooms_in(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[steps(1, 5000)])
    (wide,) = world.station.metrics.series("a", ["loss"], columns=100)
    assert len(wide.points.x) <= 200
    assert (wide.points.exact, wide.count) == (False, 5000)
    (near,) = world.station.metrics.series("a", ["loss"], columns=100, start=4000, end=4010)
    assert (near.points.x, near.points.exact) == ([*range(4000, 4011)], True)
    by_time = world.station.metrics.series("a", axis="time", columns=100, start=1001.0, end=1003.0)
    assert by_time[0].points.x == [1001.0, 1002.0, 1003.0]
    assert world.station.metrics.summary("a", start=4000, end=4010).steps == 11


def test_a_series_or_table_that_is_not_there_is_named_with_those_that_are(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[steps(1, 5)])
    with pytest.raises(NotFound, match="no series reward") as caught:
        world.station.metrics.series("a", ["loss", "reward"])
    assert "loss" in str(caught.value.hint)
    with pytest.raises(NotFound, match="no rows of GpuSample"):
        world.station.metrics.rows("a", "GpuSample")
    with pytest.raises(NotFound, match="no rows of jobs"):
        world.station.metrics.rows("a", "jobs")


def test_nothing_measured_is_no_error(world: LocalWorld) -> None:
    recorded(world.store, "a")
    assert world.station.metrics.contents("a").series == ()
    assert world.station.metrics.series("a") == []
    assert world.station.metrics.summary("a").steps == 0


@every_station
def test_imported_files_fill_in_and_a_second_import_replaces_the_first(world: LocalWorld) -> None:
    recorded(world.store, "a", a1=[steps(1, 5)])
    done = world.station.metrics.import_files("a", FILES / "tensorboardx")
    assert done.kind == "event files of TensorBoard"
    assert set(done.series) >= {"loss", "gradient_norm", "loss/average"}
    (loss,) = world.station.metrics.series("a", ["loss"])
    assert loss.points.y[:6] == [1.0, 1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5], "recorded steps stay"
    world.station.metrics.import_files("a", FILES / "run-cats.wandb")
    names = world.station.metrics.contents("a").series
    assert "eval.score" in names
    assert "loss/average" not in names
    with pytest.raises(UserError):
        world.station.metrics.import_files("a", FILES / "make.py")
    with pytest.raises(NotFound):
        world.station.metrics.import_files("none", FILES / "tensorboardx")


def test_an_exported_database_has_the_rows_and_what_home_knows(finished: LocalWorld, tmp_path: Path) -> None:
    written = finished.station.metrics.export("done", tmp_path / "run.db")
    assert written.rows > 0
    connection = sqlite3.connect(tmp_path / "run.db")
    facts = dict(connection.execute("SELECT key, value FROM RunInfo WHERE job_id = 'done'"))
    last = connection.execute("SELECT max(step) FROM StepMetric WHERE job_id = 'done'").fetchone()[0]
    connection.close()
    assert last == 20
    assert facts["framework"] == "ai-toolkit"
    assert (facts["total_steps"], facts["dataset_images"], facts["exit_code"]) == ("20", "6", "0")
    assert float(facts["ended_at"]) >= float(facts["started_at"]) > 1.7e9
    assert float(facts["provisioning_seconds"]) >= 0
    assert float(facts["transfer_seconds"]) >= 0
    assert float(facts["price_per_hour_usd"]) == 0
    assert abs(float(facts["clock_offset_seconds"])) < 60
    assert "stopped_by" not in facts


def test_exporting_nothing_is_refused(world: LocalWorld, tmp_path: Path) -> None:
    recorded(world.store, "a")
    with pytest.raises(NotFound, match="nothing was measured"):
        world.station.metrics.export("a", tmp_path / "a.csv")


def test_an_unknown_subject_is_not_found(world: LocalWorld) -> None:
    with pytest.raises(NotFound, match="no job x"):
        world.station.metrics.find("x")
    with pytest.raises(NotFound, match="vastai/1"):
        world.station.metrics.find("vastai/1")
