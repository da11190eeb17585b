"""Folding puts each record into the database once, whatever is killed or repeated on the way."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trackside.metrics.test_journal import STEPS_PER_SEGMENT, append_step
from trackside.metrics.database import open_database
from trackside.metrics.fold import (
    event_record,
    finish_journal,
    fold_journal,
    fold_leftovers,
    fold_segment,
    info_record,
    sample_record,
    step_record,
)
from trackside.metrics.journal import MARK, STEP, STEP_LAYOUT, Journal, leftover_segments
from trackside.sampler.sample import GpuReading, IoReading, MemoryReading, ProcessReading, Sample

SAMPLE = Sample(
    timestamp=200.0,
    memory=MemoryReading(total_gb=64.0, used_gb=40.0, available_gb=50.0, swap_used_gb=0.5),
    main_process_memory_gb=6.0,
    worker_memory_gb=2.0,
    worker_count=4,
    cpu_utilization_percent=12.5,
    gpus=(
        GpuReading(gpu_index=0, name="A", memory_used_gb=10.0, memory_total_gb=24.0, utilization_percent=90.0),
        GpuReading(gpu_index=1, name="A", memory_used_gb=20.0, memory_total_gb=24.0, utilization_percent=100.0),
    ),
    processes=(ProcessReading(pid=7, role="main", memory_gb=6.0, cpu_percent=99.0, gpu_memory_gb=20.0),),
    io=IoReading(disk_total_gb=100.0, disk_free_gb=60.0),
)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "aitk_db.db")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(str(tmp_path / "journals"), "job's")


def rows(database: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def test_each_kind_of_record_gets_its_rows(database: str, journal: Journal) -> None:
    append_step(journal, 5)
    for record in (
        step_record(5, 105.0, {"epoch": 1.0}),
        sample_record(SAMPLE),
        info_record({"total_steps": 10, "framework": "kohya"}),
        event_record("save_start", 106.0, {"step": 5}),
    ):
        journal.append(record)
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: SAMPLE)
    assert rows(database, "SELECT job_id, step, timestamp, loss, batch_size, gradient_norm FROM StepMetric") == [
        ("job's", 5, 105.0, 0.5, 4, None)
    ]
    assert rows(database, "SELECT step, name, value FROM StepValue") == [(5, "epoch", 1.0)]
    assert rows(database, "SELECT * FROM RunInfo ORDER BY key") == [
        ("job's", "framework", "kohya"),
        ("job's", "total_steps", "10"),
    ]
    # The fullest GPU's memory, and the mean of what they do; the event's own sample is the second.
    one = ("job's", 200.0, 64.0, 40.0, 50.0, 0.5, 6.0, 2.0, 4, 20.0, 95.0, 12.5)
    assert rows(database, "SELECT * FROM MetricsSample") == [(1, *one), (2, *one)]
    assert rows(database, "SELECT gpu_index, memory_used_gb FROM GpuSample") == [(0, 10.0), (1, 20.0)] * 2
    assert rows(database, "SELECT pid, role, gpu_memory_gb FROM ProcessSample") == [(7, "main", 20.0)] * 2
    assert rows(database, "SELECT disk_free_gb FROM ResourceSample") == [(60.0,)] * 2
    assert rows(database, "SELECT event_type, timestamp, details, memory_snapshot_id FROM TrainingEvent") == [
        ("save_start", 106.0, json.dumps({"step": 5}), 2)
    ]


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_null(database: str, journal: Journal, loss: float) -> None:
    append_step(journal, 1, loss)
    memory, places = journal.step_room
    STEP_LAYOUT.pack_into(memory, next(places), STEP, -1, 2, 102.0, 0.0, 0.0, 0.0, 0.0, MARK)
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
    assert rows(database, "SELECT loss, batch_size, gradient_norm FROM StepMetric") == [
        (None, 4, None),
        (0.0, None, 0.0),
    ]


@pytest.mark.parametrize("count", [1, 49, 50, 51, 1000, 1049, 1050])
def test_steps_are_folded_in_their_order_and_whole_however_many_there_are(
    database: str, journal: Journal, count: int
) -> None:
    for step in range(count):
        append_step(journal, step)
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
    found = rows(database, "SELECT id - 1, step, job_id, loss FROM StepMetric ORDER BY id")
    assert found == [(step, step, "job's", 0.5) for step in range(count)]


def test_nothing_is_folded_twice(database: str, journal: Journal) -> None:
    for step in range(STEPS_PER_SEGMENT + 10):
        append_step(journal, step)
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
        fold_journal(connection, journal, snapshot=lambda: None)
        append_step(journal, -1)
        fold_journal(connection, journal, snapshot=lambda: None)
    assert rows(database, "SELECT count(*), count(DISTINCT step) FROM StepMetric") == [(STEPS_PER_SEGMENT + 11,) * 2]


def test_a_process_that_dies_between_fold_and_removal_leaves_no_second_row(database: str, journal: Journal) -> None:
    append_step(journal, 1)
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
        append_step(journal, 2)
        for segment in journal.close():
            segment.release()  # as the end of its process does
        folder = str(Path(database).parent / "journals")
        assert fold_leftovers(connection, folder) == 1
        assert fold_leftovers(connection, folder) == 0
    assert rows(database, "SELECT step FROM StepMetric") == [(1,), (2,)]
    assert rows(database, "SELECT * FROM TracksideJournal") == []


def test_a_fold_that_fails_in_the_middle_changes_nothing(database: str, journal: Journal) -> None:
    append_step(journal, 1)
    with closing(open_database(database)) as connection, closing(sqlite3.connect(database, timeout=0)) as other:
        connection.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            fold_journal(connection, journal, snapshot=lambda: None)
        other.rollback()
        fold_journal(connection, journal, snapshot=lambda: None)
    assert rows(database, "SELECT step FROM StepMetric") == [(1,)]


def test_an_unfinished_journal_stays_for_the_next_who_opens_the_database(database: str, journal: Journal) -> None:
    append_step(journal, 1)
    with closing(open_database(database)) as connection, closing(sqlite3.connect(database, timeout=0)) as other:
        connection.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            finish_journal(connection, journal, snapshot=lambda: None)
        other.rollback()
        assert fold_leftovers(connection, str(Path(database).parent / "journals")) == 1
    assert rows(database, "SELECT step FROM StepMetric") == [(1,)]


def test_two_processes_that_fold_the_same_segment_share_its_rows(tmp_path: Path, database: str) -> None:
    journal = Journal(str(tmp_path / "journals"), "job")
    count = STEPS_PER_SEGMENT - 1
    for step in range(count):
        append_step(journal, step)
    (segment,) = journal.segments()
    open_database(database).close()

    def fold() -> None:
        with closing(open_database(database)) as connection:
            fold_segment(connection, segment, snapshot=lambda: None)

    threads = [threading.Thread(target=fold) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(database, "SELECT count(*), count(DISTINCT step) FROM StepMetric") == [(count, count)]


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "values", "step": None, "at": 1.0, "values": {"a": 1.0}},
        {"kind": "sample", "sample": {"memory": 3}},
        {"kind": "event", "at": "x"},
        {"kind": "info", "values": 5},
        {"kind": "of a newer version"},
        {},
    ],
)
def test_a_record_that_cannot_be_read_holds_nothing_up(database: str, journal: Journal, record: dict[str, Any]) -> None:
    journal.append(record)
    journal.append(info_record({"after": "it"}))
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
    assert rows(database, "SELECT key FROM RunInfo") == [("after",)]


def test_a_later_fact_replaces_an_earlier_one(database: str, journal: Journal) -> None:
    for value in (1, 1, 2):
        journal.append(info_record({"total_steps": value}))
    with closing(open_database(database)) as connection:
        fold_journal(connection, journal, snapshot=lambda: None)
    assert rows(database, "SELECT key, value FROM RunInfo") == [("total_steps", "2")]


def test_leftovers_of_another_job_keep_its_name(tmp_path: Path, database: str) -> None:
    folder = str(tmp_path / "journals")
    for job in ("one", "two"):
        journal = Journal(folder, job)
        append_step(journal, 1)
        for segment in journal.close():
            segment.release()
    with closing(open_database(database)) as connection:
        fold_leftovers(connection, folder)
    assert sorted(rows(database, "SELECT job_id, step FROM StepMetric")) == [("one", 1), ("two", 1)]
    assert leftover_segments(folder) == []
