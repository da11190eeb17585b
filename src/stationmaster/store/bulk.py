"""Writes many rows with few statements, and reads with those that are asked most, the same on both engines.

A worker writes and reads the same few kinds of rows all day, so each statement is compiled once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreError
from stationmaster.store.engine import first_line

Row = Mapping[str, Any]


def append_rows(connection: Connection, table: sa.Table, rows: Sequence[Row]) -> None:
    """Insert `rows` in their order, in one statement; all of them have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    by_columns = connection.dialect.name != "sqlite" and len(rows) > 1
    known = (connection.dialect.name, table, names, by_columns)
    if known not in _PREPARED:
        statement = _insert_by_columns(table, names) if by_columns else table.insert()
        _PREPARED[known] = PreparedStatement(connection.dialect, statement, names)
    columns = [{name: [row[name] for row in rows] for name in names}]
    _PREPARED[known].execute(connection, columns if by_columns else rows)


def upsert(
    connection: Connection,
    table: sa.Table,
    rows: Sequence[Row],
    *,
    key: tuple[str, ...],
    where: sa.ColumnElement[bool] | None = None,
) -> int:
    """Insert `rows`; where the key exists already replace the other columns, but only if `where` holds for the row.

    Returns how many rows were written.
    """
    names = tuple(rows[0])
    known = (connection.dialect.name, table, names, key, where)
    if known not in _PREPARED:
        statement = _upsert(connection.dialect.name, table, names, key, where)
        _PREPARED[known] = PreparedStatement(connection.dialect, statement, names)
    return _PREPARED[known].execute(connection, rows)


def insert_if_absent(connection: Connection, table: sa.Table, row: Row) -> bool:
    """Insert `row` unless its key exists or is being written by another transaction; return whether it was inserted."""
    insert = insert_into(connection.dialect.name, table).values(**row).on_conflict_do_nothing().returning(sa.literal(1))
    return connection.execute(insert).first() is not None


def insert_into(dialect: str, table: sa.Table) -> Any:
    """An INSERT that supports ON CONFLICT. Imports only the dialect in use: PostgreSQL's is slow to import."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert(table)


def read_rows(connection: Connection, query: sa.Select[Any], values: Row) -> list[dict[str, Any]]:
    """The rows of a query that its module keeps. The values of an expanding parameter are a list."""
    lists = {name: _padded(value) for name, value in values.items() if isinstance(value, list)}
    known = (connection.dialect.name, query, *map(len, lists.values()))
    if known not in _PREPARED:
        _PREPARED[known] = PreparedStatement(connection.dialect, query, example={**values, **lists})
    # The compiled query has a numbered parameter for each member of a list.
    members = {f"{name}_{n}": member for name, found in lists.items() for n, member in enumerate(found, start=1)}
    return _PREPARED[known].rows(connection, {**values, **members})


def _padded(values: list[Any]) -> list[Any]:
    """The list with its last value repeated up to a power of two: so that few lengths need a statement of their own.

    >>> _padded([3, 1, 2])
    [3, 1, 2, 2]
    """
    return values + values[-1:] * ((1 << max(0, len(values) - 1).bit_length()) - len(values))


class PreparedStatement:
    """A compiled statement whose rows go straight to the driver.

    SQLAlchemy takes longer to bind a row to a statement than SQLite takes to write it, and longer to prepare a query
    than SQLite takes to answer it.
    """

    def __init__(
        self,
        dialect: sa.Dialect,
        statement: sa.Executable,
        names: Sequence[str] | None = None,
        *,
        example: Row | None = None,
    ) -> None:
        """`names`: the columns of an insert. `example`: values of a query, with lists as long as they will be."""
        options = {} if example is None else {"render_postcompile": True}
        filled: Any = statement if example is None else statement.params(example)  # type: ignore[attr-defined]
        compiled = filled.compile(dialect=dialect, column_keys=names, compile_kwargs=options)
        self._text: str = compiled.string
        self._bind = _binder(compiled, dialect)
        self._names, self._converters = _columns(compiled, dialect)

    def execute(self, connection: Connection, rows: Sequence[Row]) -> int:
        """Execute it for each of `rows`, in their order; return how many it changed.

        Raises StoreError, or what SQLAlchemy would raise.
        """
        bound = [self._bind(row) for row in rows]
        with self._cursor(connection) as cursor:
            if len(bound) == 1:
                cursor.execute(self._text, bound[0])
            else:
                cursor.executemany(self._text, bound)
            return int(cursor.rowcount)

    def execute_returning(self, connection: Connection, rows: Sequence[Row]) -> list[tuple[Any, ...] | None]:
        """Execute a statement that returns one row or none for each of `rows`; return the results in their order.

        Takes one round trip where the driver can do that. Raises as `execute` does.
        """
        bound = [self._bind(row) for row in rows]
        with self._cursor(connection) as cursor:
            if connection.dialect.name == "sqlite":
                return [cursor.execute(self._text, each).fetchone() for each in bound]
            return self._execute_in_one_round_trip(cursor, bound)

    def rows(self, connection: Connection, values: Row) -> list[dict[str, Any]]:
        """Execute a query; return its rows by column name. Raises as `execute` does."""
        with self._cursor(connection) as cursor:
            cursor.execute(self._text, self._bind(values))
            found = [dict(zip(self._names, row, strict=True)) for row in cursor.fetchall()]
        for name, convert in self._converters.items():
            for row in found:
                row[name] = convert(row[name])
        return found

    @contextmanager
    def _cursor(self, connection: Connection) -> Iterator[Any]:
        cursor = connection.connection.cursor()
        driver = connection.dialect.loaded_dbapi
        try:
            yield cursor
        except (driver.OperationalError, driver.InternalError) as exc:  # as in engine.py
            connection.invalidate(exc)
            raise StoreError(
                f"the store does not answer: {first_line(exc)}", hint="run `stationmaster doctor`"
            ) from exc
        except driver.Error as exc:
            raise sa.exc.DBAPIError.instance(self._text, None, exc, driver.Error, dialect=connection.dialect) from exc
        finally:
            cursor.close()

    def _execute_in_one_round_trip(self, cursor: Any, bound: Sequence[Any]) -> list[tuple[Any, ...] | None]:
        cursor.executemany(self._text, bound, returning=True)
        results = [cursor.fetchone()]
        while cursor.nextset():
            results.append(cursor.fetchone())
        return results


_PREPARED: dict[tuple[object, ...], PreparedStatement] = {}


def _insert_by_columns(table: sa.Table, names: tuple[str, ...]) -> sa.Insert:
    """PostgreSQL takes a whole column as one value; without this each row would be a statement."""
    from sqlalchemy.dialects import postgresql  # slow to import, and SQLite does not need it

    columns = [sa.bindparam(name, type_=postgresql.ARRAY(table.c[name].type)) for name in names]
    rows = sa.func.unnest(*columns).table_valued(*names, with_ordinality="place", name="rows").render_derived()
    return table.insert().from_select(list(names), sa.select(*(rows.c[name] for name in names)).order_by(rows.c.place))


def _upsert(
    dialect: str, table: sa.Table, names: tuple[str, ...], key: tuple[str, ...], where: sa.ColumnElement[bool] | None
) -> sa.Executable:
    insert = insert_into(dialect, table)
    others = {name: insert.excluded[name] for name in names if name not in key}
    statement: sa.Executable = insert.on_conflict_do_update(index_elements=list(key), set_=others, where=where)
    return statement


def _columns(compiled: Any, dialect: sa.Dialect) -> tuple[tuple[str, ...], dict[str, Callable[[Any], Any]]]:
    """The names of a query's columns, and how its truth values are converted: in SQLite they are numbers."""
    kinds = {column.keyname: column.type for column in compiled._result_columns}
    truths = {name: kind.dialect_impl(dialect) for name, kind in kinds.items() if isinstance(kind, sa.Boolean)}
    found = {name: kind.result_processor(dialect, None) for name, kind in truths.items()}
    return tuple(kinds), {name: convert for name, convert in found.items() if convert is not None}


def _binder(compiled: Any, dialect: sa.Dialect) -> Callable[[Row], Any]:
    """A function that turns a row into the driver's values: by position or by name, converted by column type."""
    processors = {
        name: process
        for name, bind in compiled.binds.items()
        if not isinstance(bind.type, sa.Boolean)  # every driver takes Python's bool
        and (process := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
    }
    given = {name: bind for name, bind in compiled.binds.items() if not bind.required}
    fixed = {name: bind.value for name, bind in given.items() if bind.callable is None}
    computed = {name: bind.callable for name, bind in given.items() if bind.callable is not None}  # on every execution
    places = tuple(compiled.positiontup or ())
    pick: Callable[[Row], Any] = itemgetter(*places) if len(places) > 1 else lambda row: tuple(map(row.get, places))
    last = pick if compiled.positional else lambda row: row
    if not processors and not given:
        return last

    def bind(row: Row) -> Any:
        values = {**fixed, **row}
        for name, compute in computed.items():
            values[name] = compute()
        for name, process in processors.items():
            values[name] = process(values[name])
        return last(values)

    return bind
