"""Insert, or replace or leave what is there by key, the same on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.prepared import Prepared


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: tuple[str, ...],
    where: sa.ColumnElement[bool] | None = None,
) -> None:
    """Insert `rows`; where the key is there already replace the rest, but only rows for which `where` holds."""
    names = tuple(rows[0])
    known = (connection.dialect.name, table, names, key, where)
    if known not in _PREPARED:
        statement = _upsert(connection.dialect.name, table, names, key, where)
        _PREPARED[known] = Prepared(connection.dialect, statement, names)
    _PREPARED[known].carry_out(connection, rows)


def insert_if_absent(connection: Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Whether `row` was inserted; one with its key that is there, or being written elsewhere, is left as it is."""
    insert = insert_into(connection.dialect.name, table).values(**row).on_conflict_do_nothing().returning(sa.literal(1))
    return connection.execute(insert).first() is not None


_PREPARED: dict[tuple[object, ...], Prepared] = {}


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
