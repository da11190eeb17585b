"""The tables that trackside writes are those that home reads."""

from __future__ import annotations

from stationmaster.series.schema import OWN_TABLES, TABLES, Kind, required_columns
from trackside.metrics import schema

_KINDS = {"REAL": Kind.REAL, "INTEGER": Kind.INTEGER, "TEXT": Kind.TEXT}


def test_home_knows_the_tables_and_columns_of_the_machine() -> None:
    theirs = {}
    for table in schema.SERIES:
        columns = {name: _KINDS[kind.split()[0]] for name, kind in schema.TABLES[table] if name != "job_id"}
        theirs[table] = {"id": Kind.INTEGER, **columns}  # RunInfo has a rowid instead
    assert {table: dict(columns) for table, columns in TABLES.items() if table not in OWN_TABLES} == theirs


def test_home_requires_what_the_machine_always_writes() -> None:
    for table in schema.SERIES:
        always = {name for name, kind in schema.TABLES[table] if "NOT NULL" in kind and name != "job_id"}
        assert set(required_columns(table)) == {"id", *always}
