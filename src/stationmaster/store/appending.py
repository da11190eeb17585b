"""Adding many rows to a table in one statement, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.prepared import Prepared


def append_rows(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert `rows`, all of which have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    by_columns = connection.dialect.name != "sqlite" and len(rows) > 1
    known = (connection.dialect.name, table, names, by_columns)
    if known not in _PREPARED:
        statement = _by_columns(table, names) if by_columns else table.insert()
        _PREPARED[known] = Prepared(connection.dialect, statement, names)
    columns = [{name: [row[name] for row in rows] for name in names}]
    _PREPARED[known].carry_out(connection, columns if by_columns else rows)


_PREPARED: dict[tuple[object, ...], Prepared] = {}


def _by_columns(table: sa.Table, names: tuple[str, ...]) -> sa.Insert:
    """PostgreSQL takes a whole column as one value; otherwise each row is a statement of its own."""
    from sqlalchemy.dialects import postgresql  # takes long, and SQLite does without

    columns = [sa.bindparam(name, type_=postgresql.ARRAY(table.c[name].type)) for name in names]
    rows = sa.func.unnest(*columns).table_valued(*names, with_ordinality="place", name="rows").render_derived()
    return table.insert().from_select(list(names), sa.select(*(rows.c[name] for name in names)).order_by(rows.c.place))
