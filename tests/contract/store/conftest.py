"""Each test of the store runs on a SQLite file and on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from stationmaster.store.engine import Database
from stationmaster.store.store import Store

OpenStore = Callable[..., Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_server").new_database())


@pytest.fixture
def open_store(url: str) -> Iterator[OpenStore]:
    """Opens the same store again, as another process would; `later` is how far its clock is ahead."""
    with ExitStack() as opened:

        def open_it(*, later: float = 0.0, **options: int) -> Store:
            database = Database(url, clock_offset=later)
            opened.callback(database.close)
            return opened.enter_context(closing(Store(database, **options)))

        yield open_it


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
