"""The installation's random id, made with the store: only machines that carry it are ours to sweep."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.engine import Database
from stationmaster.store.tables import installation

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"


def ensure_id(connection: Connection, database: Database) -> str:
    """The installation's id; made on first use."""
    found = connection.execute(sa.select(installation.c.id)).scalar_one_or_none()
    if found is None:
        found = "".join(secrets.choice(_ALPHABET) for _ in range(8))
        now = connection.execute(sa.select(database.now)).scalar_one()
        connection.execute(installation.insert().values(one=1, id=found, created_at=now))
    return str(found)


def read_id(database: Database) -> str:
    with database.read() as connection:
        return str(connection.execute(sa.select(installation.c.id)).scalar_one())
