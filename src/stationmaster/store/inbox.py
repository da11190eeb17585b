"""The inbox: every message to a user, delivered or not."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import Note
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.tables import inbox


class InboxNotes:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, user: str, note: Note) -> None:
        """Store a note; one with the same key stays as it is."""
        with self._database.write() as connection:
            put(connection, user, note)

    def of_user(
        self, user: str, *, unread_only: bool = False, limit: int = 100, before: int | None = None
    ) -> list[Note]:
        """The newest `limit` notes, or those before the one with this id, oldest first."""
        query = sa.select(inbox).where(inbox.c.user == user).order_by(inbox.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(inbox.c.id < before)
        if unread_only:
            query = query.where(inbox.c.read_at.is_(None))
        with self._database.read() as connection:
            return [known_fields(Note, dict(row)) for row in connection.execute(query).mappings()][::-1]

    def count_unread(self, user: str) -> int:
        query = sa.select(sa.func.count()).select_from(inbox).where(inbox.c.user == user, inbox.c.read_at.is_(None))
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def mark_read(self, user: str, *, up_to: int) -> None:
        """Mark the user's notes up to this id as read."""
        seen = (inbox.c.user == user, inbox.c.id <= up_to, inbox.c.read_at.is_(None))
        with self._database.write() as connection:
            connection.execute(inbox.update().where(*seen).values(read_at=self._database.now))


def put(connection: Connection, user: str, note: Note) -> None:
    row = {key: value for key, value in dataclasses.asdict(note).items() if key != "id"}
    insert_if_absent(connection, inbox, {"user": user, **row})
