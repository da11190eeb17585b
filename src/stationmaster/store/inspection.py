"""Looks at a store as it is: neither created, migrated nor changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DatabaseError

from stationmaster.errors import NotFound
from stationmaster.model import RentalState, State
from stationmaster.store.engine import Database, first_line
from stationmaster.store.ledger_proof import prove
from stationmaster.store.schema import HEAD, schema_version
from stationmaster.store.tables import events, installation, jobs, metadata, rentals, trained_models, users

_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    kind: str  # SQLite or PostgreSQL
    place: str  # the file, or the URL without its password
    bytes: int
    schema: str | None  # None: empty
    newest_schema: str
    installation: str | None
    created_at: float | None
    counts: Mapping[str, int]


def kind_and_place(url: str) -> tuple[str, str]:
    """What kind of database it is, and where; opens nothing. Raises ConfigInvalid."""
    database = Database(url)
    return _kind(database), _place(database)


def facts_of(url: str) -> StoreFacts:
    """Raises NotFound if there is no store yet, StoreError, ConfigInvalid."""
    with _opened(url) as database, database.snapshot() as connection:
        version = schema_version(connection)
        present = set(sa.inspect(connection).get_table_names())
        made = connection.execute(sa.select(installation)).mappings().first() if "installation" in present else None
        return StoreFacts(
            kind=_kind(database),
            place=_place(database),
            bytes=_size(database, connection),
            schema=version,
            newest_schema=HEAD,
            installation=None if made is None else str(made["id"]),
            created_at=None if made is None else float(made["created_at"]),
            counts={
                name: int(connection.execute(sa.select(sa.func.count()).select_from(table).where(which)).scalar_one())
                for name, (table, which) in _counts().items()
                if table.name in present
            },
        )


def problems_of(url: str) -> list[str]:
    """What is wrong with the store: damaged pages, broken references, missing tables, credits that do not add up.

    Raises NotFound if there is no store yet, StoreError, ConfigInvalid.
    """
    with _opened(url) as database, database.snapshot() as connection:
        checks = (_damage, _broken_references) if database.is_sqlite else ()
        for check in (*checks, _schema_problems, lambda connection: prove(connection).problems):
            if found := [*check(connection)]:  # the later ones need what the earlier ones found to be whole
                return found[:_MOST_PROBLEMS]
        return []


@contextmanager
def _opened(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        if database.is_sqlite and not Path(str(database.url.database)).exists():
            raise NotFound(f"there is no store at {_place(database)}", hint="any command that needs one creates it")
        yield database
    finally:
        database.close()


def _kind(database: Database) -> str:
    return "SQLite" if database.is_sqlite else "PostgreSQL"


def _place(database: Database) -> str:
    return str(database.url.database) if database.is_sqlite else database.url.render_as_string(hide_password=True)


def _size(database: Database, connection: Connection) -> int:
    if not database.is_sqlite:
        return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())
    files = (Path(f"{database.url.database}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _counts() -> dict[str, tuple[sa.Table, sa.ColumnElement[bool]]]:
    """What is counted: rows of a table, under a condition."""
    return {
        "jobs": (jobs, sa.true()),
        "running_jobs": (jobs, jobs.c.state != State.ENDED.value),
        "machines": (rentals, rentals.c.state != RentalState.GONE.value),
        "events": (events, sa.true()),
        "models": (trained_models, sa.true()),
        "users": (users, sa.true()),
    }


def _damage(connection: Connection) -> Iterator[str]:
    try:
        for (line,) in connection.exec_driver_sql(f"PRAGMA integrity_check({_MOST_PROBLEMS})"):
            if line != "ok":
                yield f"damaged: {' '.join(str(line).split())}"
    except DatabaseError as problem:  # some damage ends the check itself
        yield f"damaged: {first_line(problem.orig)}"


def _broken_references(connection: Connection) -> Iterator[str]:
    for table, row, parent, *_ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} names a row of {parent} that does not exist"


def _schema_problems(connection: Connection) -> Iterator[str]:
    version = schema_version(connection)
    if version != HEAD:
        newer = "written by a newer Stationmaster" if version is not None and version > HEAD else "not migrated yet"
        yield f"schema {version}, this Stationmaster has {HEAD}: {newer}"
        return
    present = sa.inspect(connection)
    tables = set(present.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in tables:
            yield f"the table {table.name} is missing"
            continue
        columns = {column["name"] for column in present.get_columns(table.name)}
        missing = [column.name for column in table.columns if column.name not in columns]
        yield from (f"the column {table.name}.{name} is missing" for name in missing)
    if connection.execute(sa.select(installation.c.id)).first() is None:
        yield "the installation has no id"
