"""Names in a SQLite store, read without the packages and checks of a store: for the completion of a command line.

Nothing is created, migrated or waited for. The file of another version has other columns, or none: then there are no
names.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

_BUSY_SECONDS = 0.2


def jobs_in(file: Path, *, limit: int) -> list[tuple[str, str, str, str | None]]:
    """Id, name, state and outcome, newest first."""
    return _rows(file, "SELECT id, name, state, outcome FROM jobs ORDER BY created_at DESC, id LIMIT ?", limit)


def models_in(file: Path, *, limit: int) -> list[Any]:
    """Slug and name."""
    return _rows(file, "SELECT slug, name FROM models ORDER BY slug LIMIT ?", limit)


def users_in(file: Path, *, limit: int) -> list[str]:
    return [name for (name,) in _rows(file, "SELECT name FROM users ORDER BY name LIMIT ?", limit)]


def _rows(file: Path, query: str, limit: int) -> list[Any]:
    if not file.is_file():
        return []
    # A reader of a store that no process has open would leave files of SQLite's own beside it.
    how = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?{how}", uri=True, timeout=_BUSY_SECONDS)) as connection:
            return connection.execute(query, (limit,)).fetchall()
    except sqlite3.Error:
        return []
