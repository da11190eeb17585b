"""Files of a run: recognised by what they hold, read without a change to them, refused in one line."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from stationmaster.errors import NotFound, UserError
from stationmaster.series.run_series import RunSeries
from stationmaster.station.run_files.reading import read_run_file
from tests.support.programs import ROOT
from trackside.metrics.schema import complete_schema

FILES = ROOT / "tests" / "fixtures" / "series"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A run's database with two jobs, in WAL mode but closed."""
    path = tmp_path / "aitk_db.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    complete_schema(connection)
    for job, began in (("old", 100.0), ("new", 5000.0)):
        for step in range(1, 11):
            connection.execute(
                "INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES (?, ?, ?, ?)",
                (job, step, began + step, 1 / step),
            )
    connection.execute("INSERT INTO RunInfo VALUES ('new', 'framework', 'kohya')")
    connection.close()
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("tensorboardx", "event files of TensorBoard"),
        ("tensors/events.out.tfevents.1700000000.host", "an event file of TensorBoard"),
        ("run-cats.wandb", "an offline run of wandb"),
    ],
)
def test_files_of_other_tools_are_known_by_their_content(name: str, kind: str) -> None:
    found = read_run_file(FILES / name)
    assert found.kind == kind
    assert "loss" in RunSeries(found.tables).names()


def test_an_offline_folder_of_wandb_is_its_file(tmp_path: Path) -> None:
    (tmp_path / "offline-run-1" / "files").mkdir(parents=True)
    shutil.copy(FILES / "run-cats.wandb", tmp_path / "offline-run-1" / "run-cats.wandb")
    assert read_run_file(tmp_path / "offline-run-1").kind == "an offline run of wandb"


def test_a_folder_with_several_runs_asks_for_one(tmp_path: Path) -> None:
    for name in ("run-a.wandb", "run-b.wandb"):
        shutil.copy(FILES / "run-cats.wandb", tmp_path / name)
    with pytest.raises(UserError, match=r"holds 2 runs: run-a.wandb, run-b.wandb"):
        read_run_file(tmp_path)


def test_a_csv_is_known_by_its_header_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "metrics.txt").write_text("step,loss\n1,0.5\n")
    assert read_run_file(tmp_path / "metrics.txt").kind == "a CSV file"


def test_of_several_jobs_in_a_database_the_newest_is_read_or_the_one_asked_for(database: Path) -> None:
    newest, old = read_run_file(database), read_run_file(database, job="old")
    assert (newest.job_id, old.job_id) == ("new", "old")
    assert newest.tables["StepMetric"].values("timestamp")[0] == 5001.0
    assert old.tables["StepMetric"].values("timestamp")[0] == 101.0
    assert "--job" in newest.notes[0]
    with pytest.raises(UserError, match="has no job other"):
        read_run_file(database, job="other")


def test_rows_that_are_only_in_the_wal_are_read_and_nothing_is_written(database: Path) -> None:
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES ('new', 11, 5011.0, 0.01)")
    before = {path.name: path.read_bytes() for path in database.parent.iterdir()}
    assert read_run_file(database).tables["StepMetric"].values("step")[-1] == 11
    assert {path.name: path.read_bytes() for path in database.parent.iterdir()} == before
    writer.close()


def test_a_database_without_a_wal_is_read_in_a_folder_that_cannot_be_written(database: Path) -> None:
    assert not database.with_name("aitk_db.db-wal").exists()
    database.chmod(0o400)
    names = sorted(path.name for path in database.parent.iterdir())
    read_run_file(database)
    assert sorted(path.name for path in database.parent.iterdir()) == names


def test_views_generated_columns_and_wrong_types_of_a_strange_database_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "strange.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE StepMetric (id INTEGER PRIMARY KEY, job_id TEXT, step, timestamp, loss,
                                 gradient_norm AS (length(hex(zeroblob(1000000)))), learning_rate);
        INSERT INTO StepMetric (job_id, step, timestamp, loss, learning_rate)
        VALUES ('j', 1, 1.0, 'text', x'00'), ('j', 'two', 2.0, 0.5, 1), ('j', 3, 3.0, 9e999, 1e-4);
        CREATE VIEW GpuSample AS SELECT 'j' AS job_id, 1 AS id, 1.0 AS timestamp, 0 AS gpu_index, 'x' AS name;
        """
    )
    connection.close()
    found = read_run_file(path)
    assert list(found.tables) == ["StepMetric"]
    assert list(found.tables["StepMetric"].rows()) == [
        {"id": 1, "step": 1, "timestamp": 1.0, "loss": None, "learning_rate": None},
        {"id": 3, "step": 3, "timestamp": 3.0, "loss": None, "learning_rate": 1e-4},
    ]


def test_a_damaged_database_is_refused_in_one_line(database: Path) -> None:
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + bytes(len(whole) - 4096))
    with pytest.raises(UserError) as caught:
        read_run_file(database)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello\n", b"\x89PNG\r\n", b"SQLite format 3\0", bytes(5000)])
def test_a_file_that_is_none_of_these_is_refused_with_a_hint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_run_file(tmp_path / "file")
    assert caught.value.hint


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_run_file(tmp_path / "missing")
    with pytest.raises(UserError, match="no files that hold series"):
        read_run_file(tmp_path)


def test_the_line_of_a_csv_without_a_step_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(UserError, match=r"a\.csv, line 1: no column with the step; the header has x, y"):
        read_run_file(tmp_path / "a.csv")
