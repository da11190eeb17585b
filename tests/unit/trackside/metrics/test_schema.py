"""A run's database has all its tables after it was opened, beside whatever a trainer keeps in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from trackside.metrics.database import open_database
from trackside.metrics.schema import TABLES, VERSION

# As the requirements write them.
FOUR_TABLES = {
    "MetricsSample": "id job_id timestamp total_memory_gb used_memory_gb available_memory_gb swap_used_gb "
    "main_process_memory_gb worker_memory_gb worker_count gpu_memory_used_gb gpu_utilization_percent "
    "cpu_utilization_percent",
    "TrainingEvent": "id job_id timestamp event_type details memory_snapshot_id",
    "StepMetric": "id job_id step timestamp loss batch_size gradient_norm learning_rate step_time_seconds",
    "AnalysisReport": "id job_id created_at summary recommendations log_errors peak_memory_gb health_score",
}


def columns(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


@pytest.mark.parametrize("table", FOUR_TABLES)
def test_the_four_tables_are_as_required(tmp_path: Path, table: str) -> None:
    open_database(str(tmp_path / "run.db")).close()
    assert columns(tmp_path / "run.db", table) == FOUR_TABLES[table].split()


def test_a_new_database_has_every_table_and_its_version(tmp_path: Path) -> None:
    with closing(open_database(str(tmp_path / "run.db"))) as connection:
        for table, wanted in TABLES.items():
            assert columns(tmp_path / "run.db", table) == [name for name, _ in wanted]
        assert connection.execute("SELECT version FROM TracksideSchema").fetchall() == [(VERSION,)]


@pytest.mark.parametrize("there", [("MetricsSample",), ("StepMetric", "TrainingEvent"), tuple(TABLES)[:-1]])
def test_a_half_created_database_is_completed(tmp_path: Path, there: tuple[str, ...]) -> None:
    path = tmp_path / "run.db"
    with closing(sqlite3.connect(path)) as connection:
        for table in there:
            connection.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {kind}' for n, kind in TABLES[table])})")
    open_database(str(path)).close()
    assert all(columns(path, table) for table in TABLES)


def test_a_column_that_an_older_version_lacks_is_added_and_rows_stay(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE StepMetric (id INTEGER PRIMARY KEY, job_id TEXT NOT NULL, step INTEGER)")
        connection.execute("INSERT INTO StepMetric (job_id, step) VALUES ('old', 3)")
    with closing(open_database(str(path))) as connection:
        found = connection.execute("SELECT job_id, step, loss, timestamp FROM StepMetric").fetchall()
    assert found == [("old", 3, None, None)]


def test_a_trainers_own_tables_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "aitk_db.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE Job (id TEXT PRIMARY KEY, status TEXT)")
        connection.execute("INSERT INTO Job VALUES ('training', 'running')")
        connection.execute("PRAGMA user_version = 7")
    with closing(open_database(str(path))) as connection:
        assert connection.execute("SELECT * FROM Job").fetchall() == [("training", "running")]
        assert connection.execute("PRAGMA user_version").fetchone() == (7,)


def test_a_newer_versions_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with closing(open_database(str(path))) as connection:
        connection.execute("UPDATE TracksideSchema SET version = ?", (VERSION + 1,))
        connection.execute("ALTER TABLE StepMetric ADD COLUMN newer REAL")
    with closing(open_database(str(path))) as connection:
        assert connection.execute("SELECT version FROM TracksideSchema").fetchall() == [(VERSION + 1,)]
    assert columns(path, "StepMetric")[-1] == "newer"


def test_a_database_that_a_trainer_writes_to_right_now_can_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    open_database(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as trainer:
        trainer.execute("BEGIN IMMEDIATE")
        open_database(str(path)).close()
        trainer.execute("COMMIT")
