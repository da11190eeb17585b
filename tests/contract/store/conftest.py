"""Each test of the store runs on a SQLite file and on a real PostgreSQL server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.tables import metadata
from tests.support.servers.postgres import PostgresServer

OpenStore = Callable[..., Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture(scope="session")
def made_in_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store's file to copy: making the schema costs more than most tests."""
    path = tmp_path_factory.mktemp("made") / "store.db"
    Store(Database(f"sqlite:///{path}")).close()
    return path


@pytest.fixture(scope="session")
def made_in_postgresql(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Empties a database that has the schema in it, and gives its URL."""
    url = postgres_server.new_database()
    Store(Database(url)).close()
    # One round trip, on one connection for all tests.
    delete_all = "; ".join(
        f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables) if table.name != "installation"
    )
    with psycopg.connect(url, autocommit=True) as connection:

        def emptied() -> str:
            connection.execute(delete_all)
            return url

        yield emptied


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind that has its schema and nothing else."""
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("made_in_sqlite"), tmp_path / "store.db")
        return f"sqlite:///{tmp_path}/store.db"
    emptied: Callable[[], str] = request.getfixturevalue("made_in_postgresql")
    return emptied()


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture
def open_store(store_url: str) -> Iterator[OpenStore]:
    """Opens the same store again, as another process would; `later` is how far its clock is ahead."""
    with ExitStack() as opened:

        def open_it(*, later: float = 0.0, **options: int) -> Store:
            database = Database(store_url, clock_offset=later)
            opened.callback(database.close)
            return opened.enter_context(closing(Store(database, **options)))

        yield open_it


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
