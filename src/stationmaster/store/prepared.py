"""Statements put into the words of their engine once: a worker writes the same few kinds of rows all day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreError
from stationmaster.store.engine import first_line

Row = Mapping[str, Any]


class Prepared:
    """A statement whose rows go to the driver as they are.

    SQLAlchemy takes longer to bind a row to a statement than SQLite takes to write it.
    """

    def __init__(self, dialect: sa.Dialect, statement: sa.Executable, names: Sequence[str] | None = None) -> None:
        """`names`: the columns of an insert."""
        compiled = statement.compile(dialect=dialect, column_keys=names)  # type: ignore[attr-defined]
        self._text: str = compiled.string
        self._bound = _binder(compiled, dialect)

    def carry_out(self, connection: Connection, rows: Sequence[Row]) -> None:
        """For each of `rows`, in their order. Raises StoreError, or what SQLAlchemy would raise."""
        bound = [self._bound(row) for row in rows]
        with self._cursor(connection) as cursor:
            if len(bound) == 1:
                cursor.execute(self._text, bound[0])
            else:
                cursor.executemany(self._text, bound)

    def answers(self, connection: Connection, rows: Sequence[Row]) -> list[tuple[Any, ...] | None]:
        """Carry out a statement that returns one row or none, once for each of `rows`; the answers in their order.

        In one round trip where the driver can do that. Raises as `carry_out` does.
        """
        bound = [self._bound(row) for row in rows]
        with self._cursor(connection) as cursor:
            if connection.dialect.name == "sqlite":
                return [cursor.execute(self._text, each).fetchone() for each in bound]
            return self._together(cursor, bound)

    @contextmanager
    def _cursor(self, connection: Connection) -> Iterator[Any]:
        cursor = connection.connection.cursor()
        driver = connection.dialect.loaded_dbapi
        try:
            yield cursor
        except driver.OperationalError as exc:
            connection.invalidate(exc)
            raise StoreError(
                f"the store does not answer: {first_line(exc)}", hint="run `stationmaster doctor`"
            ) from exc
        except driver.Error as exc:
            raise sa.exc.DBAPIError.instance(self._text, None, exc, driver.Error, dialect=connection.dialect) from exc
        finally:
            cursor.close()

    def _together(self, cursor: Any, bound: Sequence[Any]) -> list[tuple[Any, ...] | None]:
        cursor.executemany(self._text, bound, returning=True)
        answers = [cursor.fetchone()]
        while cursor.nextset():
            answers.append(cursor.fetchone())
        return answers


def _binder(compiled: Any, dialect: sa.Dialect) -> Callable[[Row], Any]:
    """What makes of a row the values that the driver wants: by place or by name, each as its column's type says."""
    processors = {
        name: process
        for name, bind in compiled.binds.items()
        if not isinstance(bind.type, sa.Boolean)  # every driver takes these as they are
        and (process := bind.type.dialect_impl(dialect).bind_processor(dialect)) is not None
    }
    given = {name: bind for name, bind in compiled.binds.items() if not bind.required}
    fixed = {name: bind.value for name, bind in given.items() if bind.callable is None}
    asked = {name: bind.callable for name, bind in given.items() if bind.callable is not None}  # each time anew
    places = tuple(compiled.positiontup or ())
    pick: Callable[[Row], Any] = itemgetter(*places) if len(places) > 1 else lambda row: tuple(map(row.get, places))
    last = pick if compiled.positional else lambda row: row
    if not processors and not given:
        return last

    def bound(row: Row) -> Any:
        values = {**fixed, **row}
        for name, ask in asked.items():
            values[name] = ask()
        for name, process in processors.items():
            values[name] = process(values[name])
        return last(values)

    return bound
