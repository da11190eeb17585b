"""A messenger server, and a store on either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.servers.messenger_server import MessengerServer

OpenStore = Callable[..., Store]


@pytest.fixture
def server() -> Iterator[MessengerServer]:
    with MessengerServer() as started:
        yield started
    assert started.wrong == []


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def open_store(store_url: str) -> Iterator[OpenStore]:
    """Opens the same store again, as another process would; `later` is how far its clock is ahead."""
    with ExitStack() as opened:

        def open_it(*, later: float = 0.0) -> Store:
            return opened.enter_context(closing(Store(Database(store_url, clock_offset=later))))

        yield open_it


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
