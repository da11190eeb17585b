"""One statement carried out for many rows, each with its own answer, in one round trip where the driver can do that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreError
from stationmaster.store.engine import Database, first_line


class Answering:
    """A statement that returns one row or none each time it is carried out.

    It goes to the driver itself: SQLAlchemy carries out such a statement once for each row, and waits each time.
    """

    def __init__(self, database: Database, statement: sa.Executable) -> None:
        self._compiled = statement.compile(dialect=database.dialect)  # type: ignore[attr-defined]
        self._is_sqlite = database.is_sqlite

    def for_each(self, connection: Connection, values: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...] | None]:
        """The answer to each of `values`, in their order. Raises StoreError."""
        parameters = [self._compiled.construct_params(dict(each)) for each in values]
        cursor = connection.connection.cursor()
        try:
            return self._one_by_one(cursor, parameters) if self._is_sqlite else self._together(cursor, parameters)
        except connection.dialect.loaded_dbapi.OperationalError as exc:
            connection.invalidate(exc)
            raise StoreError(
                f"the store does not answer: {first_line(exc)}", hint="run `stationmaster doctor`"
            ) from exc
        finally:
            cursor.close()

    def _one_by_one(self, cursor: Any, parameters: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...] | None]:
        names = self._compiled.positiontup
        text = self._compiled.string
        return [cursor.execute(text, [each[name] for name in names]).fetchone() for each in parameters]

    def _together(self, cursor: Any, parameters: Sequence[Mapping[str, Any]]) -> list[tuple[Any, ...] | None]:
        cursor.executemany(self._compiled.string, parameters, returning=True)
        answers = [cursor.fetchone()]
        while cursor.nextset():
            answers.append(cursor.fetchone())
        return answers
