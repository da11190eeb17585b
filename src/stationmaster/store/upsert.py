"""Insert, or replace or leave what is there by key, the same on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: tuple[str, ...],
    where: sa.ColumnElement[bool] | None = None,
) -> None:
    """Insert `rows`; where the key is there already replace the rest, but only rows for which `where` holds."""
    connection.execute(_upsert(connection.dialect.name, table, tuple(rows[0]), key, where), list(rows))


def insert_if_absent(connection: Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Whether `row` was inserted; one with its key that is there, or being written elsewhere, is left as it is."""
    insert = insert_into(connection.dialect.name, table).values(**row).on_conflict_do_nothing().returning(sa.literal(1))
    return connection.execute(insert).first() is not None


# Kept, since a worker writes the same few kinds of rows all day and putting a statement together takes a millisecond.
@cache
def _upsert(
    dialect: str, table: sa.Table, names: tuple[str, ...], key: tuple[str, ...], where: sa.ColumnElement[bool] | None
) -> sa.Executable:
    insert = insert_into(dialect, table)
    others = {name: insert.excluded[name] for name in names if name not in key}
    statement: sa.Executable = insert.on_conflict_do_update(index_elements=list(key), set_=others, where=where)
    return statement


def insert_into(dialect: str, table: sa.Table) -> Any:
    """An INSERT that knows ON CONFLICT. Only the dialect in use is imported: PostgreSQL's takes long."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)
