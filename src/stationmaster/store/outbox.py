"""Messages on their way: written once per event, person and purpose, claimed with a lease, kept until they are sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from stationmaster.errors import LeaseLost
from stationmaster.model import Note
from stationmaster.store import inbox
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.codec import dumps
from stationmaster.store.engine import Database
from stationmaster.store.tables import outbox


class LetterState(StrEnum):
    PENDING = "PENDING"
    SENT = "SENT"
    FAILED = "FAILED"  # no way led to the person


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLetter:
    """A message to one person. One that is not to be pushed only goes to the inbox."""

    cause: str  # what it tells of, as event:17; the same again is the same letter
    user: str
    purpose: str
    note: Note
    message: Mapping[str, Any]
    push: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message in our hands until `lease_until`; `now` is the database's time of the claim."""

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

    def post(self, letters: Iterable[NewLetter]) -> int:
        """Write letters and their inbox rows in one transaction; how many were new. Repeating it changes nothing."""
        new = 0
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            for letter in letters:
                inbox.put(connection, letter.user, letter.note)
                if letter.push:
                    new += insert_if_absent(connection, outbox, _row(letter, now))
        return new

    def claim(self, owner: str, *, limit: int, seconds: float) -> list[Letter]:
        """Take up to `limit` letters that are due and that nobody is sending."""
        now = self._database.now
        due = (
            sa.select(outbox.c.id)
            .where(
                outbox.c.state == LetterState.PENDING.value,
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
        letters = [
            Letter(
                id=row["id"],
                user=row["user"],
                purpose=row["purpose"],
                message=json.loads(row["message"]),
                tries=row["tries"],
                token=row["lease_token"],
                now=row["now"],
            )
            for row in rows
        ]
        return sorted(letters, key=lambda letter: letter.id)

    def has_due(self) -> bool:
        """Whether a claim might find something: a look that writes nothing."""
        query = sa.select(outbox.c.id).where(
            outbox.c.state == LetterState.PENDING.value, outbox.c.next_at <= self._database.now
        )
        with self._database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def count_pending(self) -> int:
        query = sa.select(sa.func.count()).select_from(outbox).where(outbox.c.state == LetterState.PENDING.value)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def sent(self, letter: Letter, channel: str) -> None:
        """Raises LeaseLost, as the others do, when somebody else sends this letter by now."""
        self._settle(letter, state=LetterState.SENT.value, channel=channel, done_at=self._database.now)

    def failed(self, letter: Letter, problem: str) -> None:
        self._settle(letter, state=LetterState.FAILED.value, problem=problem, done_at=self._database.now)

    def put_off(self, letter: Letter, seconds: float, *, problem: str | None = None, counts: bool = True) -> None:
        """Try again later; a wait for the end of quiet hours does not count as a try."""
        values: dict[str, Any] = {"next_at": self._database.now + seconds, "problem": problem}
        self._settle(letter, tries=letter.tries + counts, **values)

    def of_job(self, job_id: str) -> list[Mapping[str, Any]]:
        """What became of a job's messages, in order: user, purpose, state, channel, tries, problem."""
        names = ("user", "purpose", "state", "channel", "tries", "problem")
        query = sa.select(*(outbox.c[name] for name in names)).where(outbox.c.job_id == job_id).order_by(outbox.c.id)
        with self._database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _settle(self, letter: Letter, **values: Any) -> None:
        change = (
            outbox.update()
            .where(outbox.c.id == letter.id, outbox.c.lease_token == letter.token)
            .values(**values, lease_owner=None, lease_until=None)
        )
        with self._database.write() as connection:
            if connection.execute(change).rowcount == 0:
                raise LeaseLost(f"message {letter.id} has been taken over")


def _row(letter: NewLetter, now: float) -> dict[str, Any]:
    return {
        "cause": letter.cause,
        "user": letter.user,
        "purpose": letter.purpose,
        "job_id": letter.note.job_id,
        "message": dumps(dict(letter.message)),
        "state": LetterState.PENDING.value,
        "tries": 0,
        "next_at": now,
        "created_at": now,
        "lease_token": 0,
    }
