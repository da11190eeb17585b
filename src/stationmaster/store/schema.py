"""Creates the schema or migrates it to the newest version, under a lock; refuses a store written by newer code."""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreNewer
from stationmaster.store.engine import Database
from stationmaster.store.tables import installation, ledger_entries, metadata, rentals, tickets

HEAD = "0008"
"""The newest migration; a test compares it with the migrations folder."""

#: The table in which Alembic keeps the version, exactly as Alembic creates it.
_alembic_version = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

_LOCK = 0x5354_4154  # any number, as long as it is always the same
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def bring_up_to_date(database: Database) -> None:
    """Bring the schema to `HEAD`, all tables present, and give the installation its id. Raises StoreNewer."""
    if _is_up_to_date(database):
        return
    with database.long_write() as connection:
        if not database.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        version = schema_version(connection)
        if version is not None and version > HEAD:
            raise StoreNewer(
                f"the store has schema {version}, this Stationmaster knows {HEAD}",
                hint="upgrade Stationmaster: pip install --upgrade stationmaster",
            )
        if version is None and _is_empty(connection):
            _create(connection)
        else:
            migrate(connection)
        _ensure_installation_id(connection, database)


def schema_version_of(url: str) -> str | None:
    """The version of the store at this URL, which is neither created nor migrated; None if it has none yet."""
    database = Database(url)
    try:
        if database.is_sqlite and not Path(str(database.url.database)).exists():
            return None  # to connect would create it
        with database.read() as connection:
            return schema_version(connection)
    finally:
        database.close()


def installation_id(database: Database) -> str:
    """The installation's random id, made with the store: only machines that carry it are ours to sweep."""
    with database.read() as connection:
        return str(connection.execute(sa.select(installation.c.id)).scalar_one())


@cache
def whole_metadata() -> sa.MetaData:
    """The tables with all their indexes, also those over only some of a table's rows.

    `tables.py` leaves these out: SQLAlchemy imports the dialects of both engines to read their conditions, which is
    slow, and only code that creates or compares tables needs them.
    """
    # A job never uses two machines.
    _add_unique_index("rentals_one_live_per_job", rentals.c.job_id, where="state IN ('REQUESTED', 'HELD')")
    _add_unique_index("ledger_entries_key", ledger_entries.c.key, where="key IS NOT NULL")
    # A path has one live ticket at a time.
    ticket = (tickets.c.job_id, tickets.c.attempt, tickets.c.path)
    _add_unique_index("tickets_live", *ticket, where="state IN ('OPEN', 'ISSUED')")
    return metadata


def _add_unique_index(name: str, *columns: sa.Column[object], where: str) -> None:
    sa.Index(name, *columns, unique=True, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _is_up_to_date(database: Database) -> bool:
    """Whether there is nothing to do. Runs at every start; importing Alembic alone would take a quarter of a second."""
    with database.read() as connection:
        present = _table_names(connection)
        if not present >= {*metadata.tables, _alembic_version.name} or schema_version(connection) != HEAD:
            return False
        return bool(connection.exec_driver_sql("SELECT count(*) FROM installation").scalar_one())


def schema_version(connection: Connection) -> str | None:
    """The version of the schema; None if there is none."""
    if _alembic_version.name not in _table_names(connection):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return None if found is None else str(found)


def _table_names(connection: Connection) -> set[str]:
    """What SQLAlchemy's inspector would find, in a tenth of its time."""
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'")
    else:
        found = connection.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    return set(found.scalars())


def _is_empty(connection: Connection) -> bool:
    return _table_names(connection).isdisjoint({*metadata.tables, _alembic_version.name})


def _create(connection: Connection) -> None:
    """Create the newest schema without running migrations; a test compares the two."""
    statements = _statements(connection.dialect.name)
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(";\n".join(statements))  # one round trip
    else:
        cursor = connection.connection.cursor()  # the driver's own: half the time
        for statement in statements:  # SQLite takes one at a time
            cursor.execute(statement)
        cursor.close()
    connection.execute(_alembic_version.insert().values(version_num=HEAD))


@cache
def _statements(dialect_name: str) -> tuple[str, ...]:
    """What creates all tables and indexes. Compiling it takes several times as long as running it."""
    found: list[str] = []

    def note(statement: sa.schema.ExecutableDDLElement, *_: object, **__: object) -> None:
        found.append(str(statement.compile(dialect=recorder.dialect)))

    driver = "postgresql+psycopg" if dialect_name == "postgresql" else dialect_name
    recorder = sa.create_mock_engine(f"{driver}://", note)
    whole_metadata().create_all(recorder, checkfirst=False)
    _alembic_version.create(recorder, checkfirst=False)
    return tuple(found)


def migrate(connection: Connection) -> None:
    """Migrate the tables from any older version to the newest one, and create tables that are missing."""
    from alembic import command  # takes a quarter of a second: only when there is something to do
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "stationmaster:store/migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # The database may have lost tables after its version was written: half restored, or half created.
    whole_metadata().create_all(connection, checkfirst=True)


def _ensure_installation_id(connection: Connection, database: Database) -> None:
    if connection.execute(sa.select(installation.c.id)).scalar_one_or_none() is None:
        made = "".join(secrets.choice(_ID_ALPHABET) for _ in range(8))
        now = connection.execute(sa.select(database.now)).scalar_one()
        connection.execute(installation.insert().values(one=1, id=made, created_at=now))
