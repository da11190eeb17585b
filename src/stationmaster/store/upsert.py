"""Insert, or replace or leave what is there by key, the same on both engines."""

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
    insert = _insert(connection, table)
    others = {name: insert.excluded[name] for name in rows[0] if name not in key}
    connection.execute(insert.on_conflict_do_update(index_elements=list(key), set_=others, where=where), list(rows))


def insert_if_absent(connection: Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Whether `row` was inserted; one with its key that is there, or being written elsewhere, is left as it is."""
    insert = _insert(connection, table).values(**row).on_conflict_do_nothing().returning(sa.literal(1))
    return connection.execute(insert).first() is not None


def _insert(connection: Connection, table: sa.Table) -> Any:
    return (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
