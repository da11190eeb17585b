"""A store is looked at as it is, on either engine: counted, checked, and never changed by that."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from stationmaster.errors import NotFound
from stationmaster.money import MicroDollars
from stationmaster.store.engine import Database
from stationmaster.store.inspection import facts_of, problems_of
from stationmaster.store.schema import HEAD
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import put_trained


def test_a_store_tells_what_it_is_and_what_is_in_it(store: Store, store_url: str) -> None:
    store.jobs.submit(spec("waits"))
    put_trained(store, "done")
    facts = facts_of(store_url)
    assert facts.kind == ("SQLite" if store.database.is_sqlite else "PostgreSQL")
    assert (facts.schema, facts.newest_schema, facts.installation) == (HEAD, HEAD, store.installation_id)
    assert facts.bytes > 10_000
    assert {name: facts.counts[name] for name in ("jobs", "running_jobs", "machines", "models")} == {
        "jobs": 2, "running_jobs": 1, "machines": 0, "models": 0,
    }  # fmt: skip


def test_a_sound_store_has_no_problems(store: Store, store_url: str) -> None:
    put_trained(store, "done")
    store.ledger.grant("ann", MicroDollars(5_000_000), actor="me", note="welcome")
    assert problems_of(store_url) == []


def test_a_missing_table_a_missing_column_and_credits_that_do_not_add_up_are_problems(url: str) -> None:
    with closing(Store(Database(url))) as store:
        store.ledger.grant("ann", MicroDollars(5_000_000), actor="me", note="welcome")
        _execute(store, "DELETE FROM credit_lots")
        assert problems_of(url) != []
        _execute(store, "ALTER TABLE alerts DROP COLUMN message")
        _execute(store, "DROP TABLE inbox")
        assert set(problems_of(url)) == {"the column alerts.message is missing", "the table inbox is missing"}
        _execute(store, "UPDATE alembic_version SET version_num = '0001'")
        assert problems_of(url) == [f"schema 0001, this Stationmaster has {HEAD}: not migrated yet"]
    assert facts_of(url).schema == "0001"


def test_a_store_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    for ask in (facts_of, problems_of):
        with pytest.raises(NotFound, match="there is no store at"):
            ask(f"sqlite:///{tmp_path}/no.db")
    assert list(tmp_path.iterdir()) == []


def test_damaged_pages_are_found(tmp_path: Path) -> None:
    file = tmp_path / "stationmaster.db"
    with closing(Store(Database(f"sqlite:///{file}"))) as store:
        for number in range(50):
            store.jobs.submit(spec(f"job-{number}"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    with file.open("rb+") as raw:
        raw.seek((root - 1) * page + 8)
        raw.write(b"\xff" * 200)
    assert any(problem.startswith("damaged: ") for problem in problems_of(f"sqlite:///{file}"))


def _execute(store: Store, statement: str) -> None:
    with store.database.write() as connection:
        connection.execute(sa.text(statement))
