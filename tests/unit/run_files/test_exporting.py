"""Exported files hold what was stored, and can be read again."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import pytest
from pyarrow import parquet

from stationmaster.errors import NotFound, UserError
from stationmaster.series.table import Table, table_of
from stationmaster.station.run_files.exporting import export_run
from stationmaster.station.run_files.reading import read_run_file
from trackside.metrics.schema import TABLES as MACHINE_TABLES
from trackside.metrics.schema import complete_schema

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        table_of(
            "StepMetric",
            {"id": [1, 2], "step": [1, 2], "timestamp": [100.0, 101.0], "loss": [0.5, None], "batch_size": [4, 4]},
        ),
        table_of("StepValue", {"id": [1], "step": [1], "timestamp": [100.0], "name": ["=reward"], "value": [7.0]}),
        table_of("MetricsSample", {"id": [9], "timestamp": [100.0], "available_memory_gb": [3.0]}),
        table_of("GpuSample", {"id": [1], "timestamp": [100.0], "gpu_index": [0], "memory_used_gb": [8.0]}),
        table_of(
            "TrainingEvent",
            {"id": [1], "timestamp": [100.0], "event_type": ["oom_error"], "memory_snapshot_id": [9]},
        ),
        table_of("RunInfo", {"id": [1, 2], "key": ["platform", "started_at"], "value": ["discrete", "90"]}),
    )
}
INFO = {"framework": "kohya", "started_at": "99.5"}


def export(path: Path, table: str | None = None) -> int:
    return export_run(TABLES, path, job_id="cats", info=INFO, table=table).rows


def test_csv_has_one_row_per_value(tmp_path: Path) -> None:
    rows = export(tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == rows
    assert found[0] == {"table": "StepMetric", "name": "loss", "step": "1", "timestamp": "100.0", "value": "0.5"}
    assert found[-1]["name"] == "available_memory_gb"
    assert found[-1]["step"] == ""


def test_csv_of_steps_can_be_read_again(tmp_path: Path) -> None:
    export(tmp_path / "all.csv")
    again = read_run_file(tmp_path / "all.csv").tables
    assert again["StepMetric"].values("loss") == [0.5, None]
    assert again["StepMetric"].values("batch_size") == [4, 4]


def test_csv_of_one_table_has_its_columns(tmp_path: Path) -> None:
    assert export(tmp_path / "steps.csv", "StepMetric") == 2
    assert (tmp_path / "steps.csv").read_text() == (
        "id,step,timestamp,loss,batch_size\n1,1,100.0,0.5,4\n2,2,101.0,,4\n"
    )


def test_a_text_cannot_be_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    export(tmp_path / "values.csv", "StepValue")
    assert "'=reward" in (tmp_path / "values.csv").read_text()


def test_json_has_the_tables_by_column(tmp_path: Path) -> None:
    export(tmp_path / "all.json")
    found = json.loads((tmp_path / "all.json").read_text())
    assert found["job"] == "cats"
    assert found["info"] == INFO
    assert found["tables"]["StepMetric"]["loss"] == [0.5, None]


def test_a_database_has_the_tables_of_trackside_and_the_facts_of_home(tmp_path: Path) -> None:
    export(tmp_path / "run.db")
    found = read_run_file(tmp_path / "run.db")
    assert found.job_id == "cats"
    for name in ("StepMetric", "StepValue", "MetricsSample", "GpuSample", "TrainingEvent"):
        written = {column: found.tables[name].values(column) for column in TABLES[name].columns}
        assert written == TABLES[name].as_lists()
    connection = sqlite3.connect(tmp_path / "run.db")
    facts = dict(connection.execute("SELECT key, value FROM RunInfo WHERE job_id = 'cats'"))
    assert facts == {"platform": "discrete", "framework": "kohya", "started_at": "99.5"}
    events = connection.execute(
        "SELECT event_type, available_memory_gb FROM TrainingEvent JOIN MetricsSample s ON s.id = memory_snapshot_id"
    )
    assert events.fetchall() == [("oom_error", 3.0)]
    assert connection.execute("SELECT count(*) FROM AnalysisReport").fetchone() == (0,)
    connection.close()


def test_the_columns_of_an_exported_database_are_those_on_the_machine(tmp_path: Path) -> None:
    export(tmp_path / "run.db")
    ours, theirs = sqlite3.connect(tmp_path / "run.db"), sqlite3.connect(":memory:", isolation_level=None)
    complete_schema(theirs)
    for table in MACHINE_TABLES:
        if not table.startswith("Trackside"):
            assert _columns(ours, table) == _columns(theirs, table), table
    ours.close()
    theirs.close()


def test_ids_that_two_attempts_used_are_counted_anew(tmp_path: Path) -> None:
    twice = table_of("MetricsSample", {"id": [1, 1], "timestamp": [1.0, 2.0], "available_memory_gb": [3.0, 4.0]})
    events = table_of(
        "TrainingEvent", {"id": [1], "timestamp": [1.0], "event_type": ["oom_error"], "memory_snapshot_id": [1]}
    )
    tables = {"MetricsSample": twice, "TrainingEvent": events}
    export_run(tables, tmp_path / "run.db", job_id="cats", info={})
    found = read_run_file(tmp_path / "run.db").tables
    assert found["MetricsSample"].values("id") == [1, 2]
    assert found["TrainingEvent"].values("memory_snapshot_id") == [None]


def test_an_unknown_suffix_or_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no suffix that names a format") as caught:
        export(tmp_path / "all.xlsx")
    assert ".parquet" in (caught.value.hint or "")
    with pytest.raises(NotFound, match="no table ProcessSample"):
        export(tmp_path / "all.csv", "ProcessSample")
    with pytest.raises(UserError, match="cannot be written"):
        export(tmp_path / "missing" / "all.csv")
    assert list(tmp_path.iterdir()) == []


def _columns(connection: sqlite3.Connection, table: str) -> list[tuple[str, str, int]]:
    return [(row[1], row[2], row[3]) for row in connection.execute(f"PRAGMA table_info({table})")]


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    export(tmp_path / "steps.parquet", "StepMetric")
    assert parquet.read_table(tmp_path / "steps.parquet").to_pydict()["loss"] == [0.5, None]
    export(tmp_path / "all.parquet")
    assert parquet.read_table(tmp_path / "all.parquet").column_names == ["table", "name", "step", "timestamp", "value"]
