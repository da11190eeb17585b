"""Brings the schema up to date by itself, under a lock; a store written by newer code is refused."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.errors import StoreNewer
from stationmaster.store.engine import Database
from stationmaster.store.installation import ensure_id
from stationmaster.store.tables import metadata

HEAD = "0004"
"""The newest migration; a test holds it against the migrations folder."""

#: The table in which Alembic keeps the version, exactly as Alembic creates it.
_alembic_version = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

_LOCK = 0x5354_4154  # any number, as long as it is always the same


def bring_up_to_date(database: Database) -> None:
    """Afterwards the schema is `HEAD`, whole, and the installation has its id. Raises StoreNewer."""
    if _is_whole(database):
        return
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        version = _version(connection)
        if version is not None and version > HEAD:
            raise StoreNewer(
                f"the store has schema {version}, this Stationmaster knows {HEAD}",
                hint="upgrade Stationmaster: pip install --upgrade stationmaster",
            )
        if version is None and _is_empty(connection):
            _create(connection)
        else:
            migrate(connection)
        ensure_id(connection, database)


def _is_whole(database: Database) -> bool:
    """Cheap enough for every start: Alembic itself costs a quarter of a second to import."""
    with database.read() as connection:
        if _version(connection) != HEAD:
            return False
        present = set(sa.inspect(connection).get_table_names())
        if not {table.name for table in metadata.sorted_tables} <= present:
            return False
        return bool(connection.execute(sa.text("SELECT count(*) FROM installation")).scalar_one())


def _version(connection: Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if found is None else str(found)


def _is_empty(connection: Connection) -> bool:
    ours = {*metadata.tables, _alembic_version.name}
    return ours.isdisjoint(sa.inspect(connection).get_table_names())


def _create(connection: Connection) -> None:
    """Create the newest schema without running migrations; a test compares the two."""
    from stationmaster.store.partial_indexes import whole_metadata  # imports both engines' dialects: only once

    whole_metadata.create_all(connection, checkfirst=False)
    _alembic_version.create(connection)
    connection.execute(_alembic_version.insert().values(version_num=HEAD))


def migrate(connection: Connection) -> None:
    """Bring tables of any older version to the newest one, and complete what is missing."""
    from alembic import command  # costs a quarter of a second: only when there is something to do
    from alembic.config import Config

    from stationmaster.store.partial_indexes import whole_metadata

    config = Config()
    config.set_main_option("script_location", "stationmaster:store/migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # A database that lost tables after its version was written (half restored, half created) is completed.
    whole_metadata.create_all(connection, checkfirst=True)
