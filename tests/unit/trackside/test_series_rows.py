"""New rows of a run's database, as columns and within a size."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trackside.metrics.schema import SERIES, columns_of, complete_schema
from trackside.report.series import parse_rows_read, read_series


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[str, sqlite3.Connection]]:
    path = str(tmp_path / "a run's #1? 100%25.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    complete_schema(connection)
    yield path, connection
    connection.close()


Database = tuple[str, sqlite3.Connection]


def add_steps(connection: sqlite3.Connection, count: int, *, job: str = "j", loss: Any = 0.5) -> None:
    connection.executemany(
        "INSERT INTO StepMetric (job_id, step, timestamp, loss) VALUES (?, ?, ?, ?)",
        [(job, step, 1000.0 + step, loss) for step in range(count)],
    )


def test_rows_come_as_columns_without_the_job(database: Database) -> None:
    path, connection = database
    add_steps(connection, 2)
    connection.execute("INSERT INTO RunInfo VALUES ('j', 'framework', 'kohya')")
    found = read_series(path, "j", {}, room_bytes=10_000)
    assert not found.more
    steps, info = found.entries
    assert (steps["table"], steps["last"]) == ("StepMetric", 2)
    assert list(steps["columns"]) == ["id", *(name for name in columns_of("StepMetric") if name != "job_id")]
    assert (steps["columns"]["step"], steps["columns"]["gradient_norm"]) == ([0, 1], [None, None])
    assert info == {"table": "RunInfo", "last": 1, "columns": {"id": [1], "key": ["framework"], "value": ["kohya"]}}


def test_only_new_rows_of_this_job_are_read(database: Database) -> None:
    path, connection = database
    add_steps(connection, 3, job="another")
    add_steps(connection, 3)
    assert read_series(path, "j", {"StepMetric": 4}, room_bytes=10_000).entries[0]["columns"]["id"] == [5, 6]
    assert read_series(path, "j", {"StepMetric": 6}, room_bytes=10_000) == ([], False)


@pytest.mark.parametrize("room_bytes", [0, 3_000, 100_000])
def test_all_rows_come_once_in_bounded_answers(database: Database, room_bytes: int) -> None:
    path, connection = database
    add_steps(connection, 300)
    connection.executemany(
        "INSERT INTO GpuSample (job_id, timestamp, gpu_index) VALUES ('j', ?, 0)", [(1.0 * n,) for n in range(300)]
    )
    rows_read: dict[str, int] = {}
    steps: list[float] = []
    samples: list[float] = []
    while True:
        found = read_series(path, "j", rows_read, room_bytes=room_bytes)
        assert len(json.dumps(found.entries)) <= max(room_bytes, 1024) * 1.1
        for entry in found.entries:
            rows_read[entry["table"]] = entry["last"]
            (steps if entry["table"] == "StepMetric" else samples).extend(entry["columns"]["timestamp"])
        if not found.more:
            break
    assert steps == [1000.0 + step for step in range(300)]
    assert samples == [1.0 * n for n in range(300)]


def test_a_row_larger_than_the_answer_is_read_alone(database: Database) -> None:
    path, connection = database
    add_steps(connection, 1)
    connection.executemany(
        "INSERT INTO TrainingEvent (job_id, timestamp, event_type, details) VALUES ('j', 1, ?, ?)",
        [("a", "x" * 5000), ("b", "y" * 100_001), ("c", "z")],
    )
    first = read_series(path, "j", {}, room_bytes=2000)
    assert ([entry["table"] for entry in first.entries], first.more) == (["StepMetric"], True)
    second = read_series(path, "j", {"StepMetric": 1}, room_bytes=2000)
    assert (second.entries[0]["columns"]["event_type"], second.more) == (["a"], True)
    third = read_series(path, "j", {"StepMetric": 1, "TrainingEvent": 1}, room_bytes=2000)
    assert third.entries[0]["columns"]["event_type"] == ["b", "c"]
    assert third.entries[0]["columns"]["details"] == [None, "z"], "no answer could hold the longest"


@pytest.mark.parametrize("value", [float("inf"), b"\xff", "x\udc80".encode(errors="surrogatepass")])
def test_what_json_cannot_hold_is_null(database: Database, value: Any) -> None:
    path, connection = database
    add_steps(connection, 1, loss=value)
    found = read_series(path, "j", {}, room_bytes=10_000)
    assert json.loads(json.dumps(found.entries, allow_nan=False))[0]["columns"]["loss"] == [None]


def test_a_table_that_is_missing_hides_no_other(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE RunInfo (job_id TEXT, key TEXT, value TEXT)")
        connection.execute("INSERT INTO RunInfo VALUES ('j', 'a', 'b')")
    assert [entry["table"] for entry in read_series(path, "j", {}, room_bytes=1000).entries] == ["RunInfo"]


@pytest.mark.parametrize("content", [None, b"", b"not a database" * 100])
def test_a_file_that_is_no_database_has_no_rows(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    assert read_series(str(path), "j", {}, room_bytes=1000) == ([], False)
    assert path.exists() == (content is not None)


def test_a_file_that_a_killed_process_left_is_read_with_its_log(database: Database, tmp_path: Path) -> None:
    """A copy of the file and its write-ahead log, without the shared memory that went with its process."""
    path, connection = database
    connection.execute("PRAGMA wal_autocheckpoint=0")
    add_steps(connection, 5)
    left = tmp_path / "left.db"
    for suffix in ("", "-wal"):
        left.with_name(left.name + suffix).write_bytes(Path(path + suffix).read_bytes())
    assert read_series(str(left), "j", {}, room_bytes=1000).entries[0]["last"] == 5


def test_what_home_has_read_is_parsed_tolerantly() -> None:
    assert parse_rows_read({"StepMetric": 7, "RunInfo": "x", "secrets": 1}) == {"StepMetric": 7}
    assert parse_rows_read(None) == parse_rows_read([1]) == {}
    assert parse_rows_read(dict.fromkeys(SERIES, 1)) == dict.fromkeys(SERIES, 1)


def test_a_table_of_an_older_version_is_read_without_the_columns_that_it_lacks(tmp_path: Path) -> None:
    path = str(tmp_path / "run.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE ProcessSample (job_id TEXT, timestamp REAL, pid INTEGER, role TEXT)")
        connection.execute("INSERT INTO ProcessSample VALUES ('j', 5.0, 7, 'main')")
    (found,) = read_series(path, "j", {}, room_bytes=10_000).entries
    assert found["columns"] == {"id": [1], "timestamp": [5.0], "pid": [7], "role": ["main"]}
