"""`stationmaster store` as people run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Home
from tests.support.servers.postgres import PostgresServer


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


def test_a_store_is_shown_checked_and_backed_up(home: Home) -> None:
    missing = home.run("store", "show")
    assert (missing.code, missing.err.startswith("error: there is no store at")) == (6, True)
    assert not home.path.exists()
    assert home.run("jobs").code == 0
    place, copy = f"{home.path}/stationmaster.db", home.folder / "copy.db"
    shown = home.run("store", "show")
    assert f"place         {place}\n" in shown.out
    assert home.run("store", "show", "--quiet").out == f"{place}\n"
    assert home.run("store", "show", "--json").json()["counts"]["jobs"] == 0
    assert home.run("store", "check").out == f"the store is sound: SQLite, {place}\n"
    assert home.run("store", "check", "--quiet").out == ""
    made = home.run("store", "backup", "copy.db")
    assert (made.code, made.out.startswith("copy.db: "), made.err.startswith("hint: to restore it")) == (0, True, True)
    again = home.run("store", "backup", "copy.db")
    assert (again.code, again.err.splitlines()[0]) == (2, "error: copy.db exists")
    replaced = home.run("store", "backup", "copy.db", "--force", "--json").json()
    assert replaced == {"file": "copy.db", "bytes": copy.stat().st_size}
    assert home.worker_pid() is None


def test_a_store_that_is_not_whole_is_an_error(home: Home) -> None:
    assert home.run("jobs").code == 0
    with home.store.database.write() as connection:
        connection.exec_driver_sql("DROP TABLE inbox")
    ran = home.run("store", "check", "--json")
    assert (ran.code, ran.json()["problems"]) == (10, ["the table inbox is missing"])
    assert "error: the store is not sound: 1 problem(s)\nhint: restore it" in ran.err


def test_postgresql_is_shown_without_its_password_and_backed_up_by_its_own_tools(
    home: Home, postgres_server: PostgresServer
) -> None:
    url = postgres_server.new_store()
    shown = home.run("store", "show", "--json", STATIONMASTER_DATABASE_URL=url).json()
    assert (shown["kind"], shown["place"].startswith("postgresql")) == ("PostgreSQL", True)
    assert home.run("store", "check", STATIONMASTER_DATABASE_URL=url).code == 0
    refused = home.run("store", "backup", "copy.db", STATIONMASTER_DATABASE_URL=url)
    assert (refused.code, "hint: pg_dump --format=custom" in refused.err) == (2, True)
