"""Insert or replace by key, the same on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: Sequence[str],
    where: sa.ColumnElement[bool] | None = None,
) -> None:
    """Insert `rows`; where the key is there already replace the rest, but only rows for which `where` holds."""
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
    others = {name: insert.excluded[name] for name in rows[0] if name not in key}
    connection.execute(insert.on_conflict_do_update(index_elements=list(key), set_=others, where=where), list(rows))
