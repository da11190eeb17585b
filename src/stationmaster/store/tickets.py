"""Upload tickets: each permits one upload of one file to the bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from stationmaster.errors import TicketRefused
from stationmaster.store.bulk import insert_if_absent
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.tables import tickets


class TicketState(StrEnum):
    OPEN = "OPEN"  # nothing has been signed for it
    ISSUED = "ISSUED"  # signed once; the upload may be under way
    DONE = "DONE"  # the file is verified under its key
    VOID = "VOID"  # given up; an upload that still arrives is discarded


LIVE_TICKET_STATES = (TicketState.OPEN, TicketState.ISSUED)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTicket:
    """What may be uploaded where. Uploads go to `quarantine`, which is never read from; verified files get `key`."""

    id: str
    job_id: str
    attempt: int
    path: str
    size: int
    sha256: str
    key: str
    quarantine: str
    part_sha256s: tuple[str, ...] = ()
    token_sha256: str | None = None  # of the token that a machine sends to the HTTP API


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket(NewTicket):
    state: TicketState
    upload: str | None = None  # the service's name for an upload in parts
    expires_at: float = 0.0
    problem: str | None = None


class Tickets:
    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, new: NewTicket, *, seconds: float = 900.0) -> Ticket:
        """Write a ticket that expires after `seconds`; if its path has a live one, return that."""
        row = {
            "id": new.id,
            "token_sha256": new.token_sha256,
            "job_id": new.job_id,
            "attempt": new.attempt,
            "path": new.path,
            "size": new.size,
            "sha256": new.sha256,
            "parts": dumps(list(new.part_sha256s)),
            "key": new.key,
            "quarantine": new.quarantine,
            "state": TicketState.OPEN.value,
        }
        with self._database.write() as connection:
            now = connection.execute(sa.select(self._database.now)).scalar_one()
            insert_if_absent(connection, tickets, {**row, "created_at": now, "expires_at": now + seconds})
            live = sa.select(tickets).where(
                tickets.c.job_id == new.job_id,
                tickets.c.attempt == new.attempt,
                tickets.c.path == new.path,
                tickets.c.state.in_(_LIVE),
            )
            return _ticket(connection.execute(live).mappings().one())

    def get(self, ticket_id: str) -> Ticket:
        """The ticket. Raises TicketRefused if it does not exist."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(tickets).where(tickets.c.id == ticket_id)).mappings().first()
        if row is None:
            raise TicketRefused("there is no such upload ticket")
        return _ticket(row)

    def of_job(self, job_id: str) -> list[Ticket]:
        query = sa.select(tickets).where(tickets.c.job_id == job_id).order_by(tickets.c.created_at, tickets.c.id)
        with self._database.read() as connection:
            return [_ticket(row) for row in connection.execute(query).mappings()]

    def live(self) -> list[Ticket]:
        """Every ticket for which an upload may still arrive."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(tickets).where(tickets.c.state.in_(_LIVE))).mappings()
            return [_ticket(row) for row in rows]

    def issue(self, ticket_id: str, *, seconds: float, upload: str | None = None) -> Ticket:
        """Mark the ticket as issued, before anything is signed for it. Raises TicketRefused the second time."""
        now = self._database.now
        change = (
            tickets.update()
            .where(tickets.c.id == ticket_id, tickets.c.state == TicketState.OPEN.value, tickets.c.expires_at > now)
            .values(state=TicketState.ISSUED.value, upload=upload, expires_at=now + seconds)
            .returning(tickets)
        )
        with self._database.write() as connection:
            row = connection.execute(change).mappings().first()
        if row is None:
            raise TicketRefused("this upload ticket was already used or has expired")
        return _ticket(row)

    def close(self, ticket_id: str, state: TicketState, *, problem: str | None = None) -> None:
        """Set the ticket to DONE or VOID; one that is already either does not change."""
        change = (
            tickets.update()
            .where(tickets.c.id == ticket_id, tickets.c.state.in_(_LIVE))
            .values(state=state.value, problem=problem, closed_at=self._database.now)
        )
        with self._database.write() as connection:
            connection.execute(change)


_LIVE = [state.value for state in LIVE_TICKET_STATES]


def _ticket(row: Mapping[Any, Any]) -> Ticket:
    return Ticket(
        id=row["id"],
        token_sha256=row["token_sha256"],
        job_id=row["job_id"],
        attempt=row["attempt"],
        path=row["path"],
        size=row["size"],
        sha256=row["sha256"],
        part_sha256s=tuple(loads(row["parts"])),
        key=row["key"],
        quarantine=row["quarantine"],
        upload=row["upload"],
        state=TicketState(row["state"]),
        expires_at=row["expires_at"],
        problem=row["problem"],
    )
