"""The time limits of our PostgreSQL sessions: what they end is a store that did not answer, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreError
from stationmaster.store.bulk import append_rows
from stationmaster.store.engine import Database, SessionLimits
from tests.support.servers.postgres import PostgresServer
from tests.support.waiting import until

NUMBERS = sa.Table("numbers", sa.MetaData(), sa.Column("number", sa.Integer, primary_key=True))
NONE = SessionLimits(idle_in_transaction=0, lock=0, statement=0)
SETTINGS = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    """A database with one table and one row in it."""
    url = postgres_server.new_database()
    with closing(Database(url)) as database, database.write() as connection:
        NUMBERS.metadata.create_all(connection)
        connection.execute(NUMBERS.insert().values(number=1))
    return url


@pytest.mark.parametrize(
    "wakes",
    [
        pytest.param(lambda connection: None, id="commits"),
        pytest.param(lambda connection: connection.execute(sa.select(NUMBERS)).all(), id="asks"),
        pytest.param(lambda connection: append_rows(connection, NUMBERS, [{"number": 3}]), id="writes"),
    ],
)
def test_who_does_nothing_inside_a_transaction_loses_its_locks_and_its_session(
    wakes: Callable[[Connection], object], url: str
) -> None:
    limits = SessionLimits(idle_in_transaction=0.3, lock=0, statement=0)
    with closing(Database(url, limits=limits)) as sleeper, closing(Database(url, limits=NONE)) as other:
        with pytest.raises(StoreError):
            sleep_inside_a_transaction(sleeper, other, wakes)
        assert numbers(sleeper) == [1], "it goes on with another connection"
        with sleeper.write() as connection:
            append_rows(connection, NUMBERS, [{"number": 3}])
        assert numbers(other) == [1, 3]


def test_who_waits_for_a_lock_in_vain_is_told_and_may_try_again(url: str) -> None:
    limits = SessionLimits(idle_in_transaction=0, lock=0.3, statement=0)
    with closing(Database(url, limits=limits)) as waiting, closing(Database(url, limits=NONE)) as other:
        with other.write() as holder:
            holder.execute(NUMBERS.update().values(number=2))
            with pytest.raises(StoreError, match="lock timeout"), waiting.write() as connection:
                connection.execute(NUMBERS.update().values(number=9))
        with waiting.write() as connection:
            connection.execute(NUMBERS.update().values(number=sa.text("number + 1")))
        assert numbers(waiting) == [3]


def test_a_statement_without_end_is_cancelled(url: str) -> None:
    limits = SessionLimits(idle_in_transaction=0, lock=0, statement=0.3)
    with closing(Database(url, limits=limits)) as database:
        with pytest.raises(StoreError, match="statement timeout"), database.read() as connection:
            connection.execute(sa.text("SELECT pg_sleep(3600)"))
        assert numbers(database) == [1]


def test_every_session_has_the_limits_but_migrations_and_snapshots(url: str) -> None:
    limited, unlimited = ("10s", "12s", "2min"), ("0", "0", "0")
    with closing(Database(url)) as database:
        for open_one, expected in (
            (database.long_write, unlimited),
            (database.write, limited),
            (database.snapshot, unlimited),
            (database.read, limited),
        ):
            with open_one() as connection:
                assert settings_of(connection) == expected, open_one.__name__


def sleep_inside_a_transaction(sleeper: Database, other: Database, wakes: Callable[[Connection], object]) -> None:
    with sleeper.write() as connection:
        connection.execute(NUMBERS.update().values(number=2))
        assert free_rows(other) == 0
        until(lambda: free_rows(other) == 1, "the end of the sleeper's locks")
        wakes(connection)


def settings_of(connection: Connection) -> tuple[str, ...]:
    return tuple(str(connection.execute(sa.text(f"SHOW {name}")).scalar_one()) for name in SETTINGS)


def free_rows(database: Database) -> int:
    """How many rows no transaction has locked."""
    with database.write() as connection:
        return len(connection.execute(sa.select(NUMBERS).with_for_update(skip_locked=True)).all())


def numbers(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(sa.select(NUMBERS.c.number).order_by(NUMBERS.c.number)).scalars())
