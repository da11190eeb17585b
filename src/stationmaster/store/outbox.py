"""Queued messages: stored once per event, person and purpose, claimed with a lease, kept with their result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from stationmaster.errors import LeaseLost
from stationmaster.model import Note
from stationmaster.store import inbox
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.tables import outbox


class MessageState(StrEnum):
    PENDING = "PENDING"
    SENT = "SENT"
    FAILED = "FAILED"  # no channel reached the person


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A message to one person. Without `push` it only goes to the inbox."""

    cause: str  # such as event:17; the same cause gives the same message
    user: str
    purpose: str
    note: Note
    message: Mapping[str, Any]
    push: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    """A message leased to us; `now` is the database's time of the claim."""

    id: int
    user: str
    purpose: str
    message: Mapping[str, Any]
    tries: int
    token: int
    now: float


class Outbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, messages: Iterable[NewMessage]) -> int:
        """Store messages and their inbox rows in one transaction; return how many were new. Safe to repeat."""
        new = 0
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            for message in messages:
                inbox.put(connection, message.user, message.note)
                if message.push:
                    new += insert_if_absent(connection, outbox, _row(message, now))
        return new

    def claim(self, owner: str, *, limit: int, seconds: float) -> list[QueuedMessage]:
        """Lease up to `limit` messages that are due and not leased."""
        now = self._database.now
        due = (
            sa.select(outbox.c.id)
            .where(
                outbox.c.state == MessageState.PENDING.value,
                outbox.c.next_at <= now,
                sa.or_(outbox.c.lease_until.is_(None), outbox.c.lease_until < now),
            )
            .order_by(outbox.c.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        take = (
            outbox.update()
            .where(outbox.c.id.in_(due.scalar_subquery()))
            .values(lease_owner=owner, lease_token=outbox.c.lease_token + 1, lease_until=now + seconds)
            .returning(outbox, now.label("now"))
        )
        with self._database.write() as connection:
            rows = connection.execute(take).mappings().all()
        messages = [
            QueuedMessage(
                id=row["id"],
                user=row["user"],
                purpose=row["purpose"],
                message=loads(row["message"]),
                tries=row["tries"],
                token=row["lease_token"],
                now=row["now"],
            )
            for row in rows
        ]
        return sorted(messages, key=lambda message: message.id)

    def has_due(self) -> bool:
        """Whether a claim might find something; writes nothing."""
        query = sa.select(outbox.c.id).where(
            outbox.c.state == MessageState.PENDING.value, outbox.c.next_at <= self._database.now
        )
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def count_pending(self) -> int:
        query = sa.select(sa.func.count()).select_from(outbox).where(outbox.c.state == MessageState.PENDING.value)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def mark_sent(self, message: QueuedMessage, channel: str) -> None:
        """Raises LeaseLost, as the next two do, if another worker has claimed this message since."""
        self._update(message, state=MessageState.SENT.value, channel=channel, done_at=self._database.now)

    def mark_failed(self, message: QueuedMessage, problem: str) -> None:
        self._update(message, state=MessageState.FAILED.value, problem=problem, done_at=self._database.now)

    def postpone(
        self, message: QueuedMessage, seconds: float, *, problem: str | None = None, counts: bool = True
    ) -> None:
        """Make the message due again later; waiting for the end of quiet hours does not count as a try."""
        values: dict[str, Any] = {"next_at": self._database.now + seconds, "problem": problem}
        self._update(message, tries=message.tries + counts, **values)

    def of_job(self, job_id: str) -> list[Mapping[str, Any]]:
        """A job's messages in order: user, purpose, state, channel, tries, problem."""
        names = ("user", "purpose", "state", "channel", "tries", "problem")
        query = sa.select(*(outbox.c[name] for name in names)).where(outbox.c.job_id == job_id).order_by(outbox.c.id)
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _update(self, message: QueuedMessage, **values: Any) -> None:
        change = (
            outbox.update()
            .where(outbox.c.id == message.id, outbox.c.lease_token == message.token)
            .values(**values, lease_owner=None, lease_until=None)
        )
        with self._database.write() as connection:
            if connection.execute(change).rowcount == 0:
                raise LeaseLost(f"message {message.id} is claimed by another worker")


def _row(message: NewMessage, now: float) -> dict[str, Any]:
    return {
        "cause": message.cause,
        "user": message.user,
        "purpose": message.purpose,
        "job_id": message.note.job_id,
        "message": dumps(dict(message.message)),
        "state": MessageState.PENDING.value,
        "tries": 0,
        "next_at": now,
        "created_at": now,
        "lease_token": 0,
    }
