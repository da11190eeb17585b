"""The ticket office: leave to put one file into the bucket once, given at home's own hand or at the HTTP door.

An upload goes to a place in quarantine that nobody reads. Only what was verified there is copied to its key, so an
address that is used again, late, or with other bytes reaches nothing that counts, whatever the service checks.
All of this waits for the network: call it in a thread.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stationmaster.delivery.bucket import Bucket, StoredObject
from stationmaster.delivery.signed_requests import Piece
from stationmaster.errors import DeliveryRefused, NotFound, TicketRefused
from stationmaster.store.tickets import LIVE_TICKET_STATES, NewTicket, Ticket, Tickets, TicketState

#: R2 takes 4.995 GiB in one request, Amazon 5: larger files go in parts.
LARGEST_PUT_BYTES = int(4.9 * 2**30)

#: As much as trackside hashes at once; with 10,000 parts at most, files of 625 GiB.
PART_BYTES = 64 << 20

_MOST_PARTS = 10_000
_QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an upload stands: done, or what is still to be sent."""

    ticket: Ticket
    pieces: tuple[Piece, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.ticket.state is TicketState.DONE


class TicketOffice:
    def __init__(
        self,
        tickets: Tickets,
        bucket: Bucket,
        *,
        seconds: float = 900.0,
        largest_put_bytes: int = LARGEST_PUT_BYTES,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._tickets = tickets
        self._bucket = bucket
        self._seconds = seconds
        self._largest_put_bytes = largest_put_bytes
        self.part_bytes = part_bytes

    def goes_in_parts(self, size: int) -> bool:
        """Whether a ticket for a file of this size needs the hashes of its parts. Raises DeliveryRefused."""
        if size > self.part_bytes * _MOST_PARTS:
            raise DeliveryRefused(f"a file of {size:,} bytes is too large for the bucket")
        return size > self._largest_put_bytes

    def open(
        self,
        *,
        job_id: str,
        attempt: int,
        path: str,
        size: int,
        sha256: str,
        key: str,
        part_sha256s: Sequence[str] = (),
        token: str | None = None,
    ) -> Ticket:
        """A ticket that nothing was signed for; what an earlier try left behind is void and gone from now on."""
        for left in self._left_behind(job_id, attempt, path):
            self.throw_away(left, "an earlier try broke off")
        self.tidy()
        return self._tickets.open(
            NewTicket(
                id=secrets.token_hex(16),
                job_id=job_id,
                attempt=attempt,
                path=path,
                size=size,
                sha256=sha256,
                key=key,
                quarantine=f"{_QUARANTINE}/{job_id}/{secrets.token_hex(16)}",
                part_sha256s=tuple(part_sha256s),
                token_sha256=None if token is None else _sha256(token),
            ),
            seconds=self._seconds,
        )

    def take_up(self, *, job_id: str, attempt: int, path: str, sha256: str) -> Standing | None:
        """What an earlier try of the same upload came to, or None where nothing of it can be used."""
        for left in self._left_behind(job_id, attempt, path):
            if left.state is TicketState.ISSUED and left.sha256 == sha256:
                try:
                    return self.settle(left.id)
                except TicketRefused:
                    continue
        return None

    def admit(self, ticket_id: str, token: str) -> Ticket:
        """The ticket that this token belongs to. Raises NotFound, the same for a wrong token as for no ticket."""
        try:
            ticket = self._tickets.get(ticket_id)
        except TicketRefused as problem:
            raise NotFound(str(problem)) from None
        if ticket.token_sha256 is None or not hmac.compare_digest(ticket.token_sha256, _sha256(token)):
            raise NotFound("there is no such upload ticket")
        return ticket

    def is_unused(self, ticket_id: str) -> bool:
        """Whether nothing has been signed for the ticket."""
        return self._tickets.get(ticket_id).state is TicketState.OPEN

    def issue(self, ticket_id: str) -> Standing:
        """Sign the upload, once: the row is closed before. Raises TicketRefused the second time."""
        ticket = self._tickets.get(ticket_id)
        if ticket.state is not TicketState.OPEN:
            raise TicketRefused("this upload ticket was used before")
        upload = self._bucket.begin_parts(ticket.quarantine) if self.goes_in_parts(ticket.size) else None
        try:
            issued = self._tickets.issue(ticket_id, seconds=self._seconds, upload=upload)
        except TicketRefused:
            if upload is not None:
                self._bucket.abandon_parts(ticket.quarantine, upload)
            raise
        return Standing(ticket=issued, pieces=self._signed(issued, range(1, len(issued.part_sha256s) + 1)))

    def settle(self, ticket_id: str) -> Standing:
        """Look at what arrived: whole, it is moved to its key and the ticket is DONE; parts that lack are signed anew.

        Raises TicketRefused, with the ticket void, when nothing or something else arrived. May be repeated.
        """
        ticket = self._tickets.get(ticket_id)
        if ticket.state is TicketState.DONE:
            return Standing(ticket=ticket)
        if ticket.state is not TicketState.ISSUED:
            raise TicketRefused("nothing can be uploaded with this ticket")
        if missing := self._missing_parts(ticket):
            return Standing(ticket=ticket, pieces=self._signed(ticket, missing))
        if not self._is_moved(ticket):
            self.throw_away(ticket, "what arrived is not what the ticket is for")
            raise TicketRefused("what arrived is not what the ticket is for; nothing of it is kept")
        self._tickets.close(ticket.id, TicketState.DONE)
        self._bucket.delete(ticket.quarantine)
        return Standing(ticket=self._tickets.get(ticket_id))

    def throw_away(self, ticket: Ticket, why: str) -> None:
        """The ticket is void and nothing that came with it is left."""
        self._tickets.close(ticket.id, TicketState.VOID, problem=why)
        if ticket.upload is not None:
            self._bucket.abandon_parts(ticket.quarantine, ticket.upload)
        self._bucket.delete(ticket.quarantine)

    def tidy(self) -> None:
        """Nothing is left in quarantine but what is on its way: an address used late leaves an object there."""
        found = list(self._bucket.listed(f"{_QUARANTINE}/"))
        awaited = {
            ticket.quarantine for ticket in self._tickets.live()
        }  # read last: each was written before its upload
        for left in found:
            if left.key not in awaited:
                self._bucket.delete(left.key)

    def _left_behind(self, job_id: str, attempt: int, path: str) -> list[Ticket]:
        return [
            ticket
            for ticket in self._tickets.of_job(job_id)
            if (ticket.attempt, ticket.path) == (attempt, path) and ticket.state in LIVE_TICKET_STATES
        ]

    def _signed(self, ticket: Ticket, numbers: Iterable[int]) -> tuple[Piece, ...]:
        if ticket.upload is None:
            request = self._bucket.sign_put(
                ticket.quarantine, size=ticket.size, sha256=ticket.sha256, seconds=self._seconds
            )
            return (Piece(request=request, offset=0, size=ticket.size),)
        return tuple(self._signed_part(ticket, ticket.upload, number) for number in numbers)

    def _signed_part(self, ticket: Ticket, upload: str, number: int) -> Piece:
        offset = (number - 1) * self.part_bytes
        size = min(self.part_bytes, ticket.size - offset)
        sha256 = ticket.part_sha256s[number - 1]
        request = self._bucket.sign_part(
            ticket.quarantine, upload, number, size=size, sha256=sha256, seconds=self._seconds
        )
        return Piece(request=request, offset=offset, size=size)

    def _missing_parts(self, ticket: Ticket) -> list[int]:
        """Numbers of parts that did not arrive; when all are there they become one object."""
        if ticket.upload is None:
            return []
        arrived = self._bucket.list_parts(ticket.quarantine, ticket.upload)
        if arrived is None:
            return []  # made one object by an earlier try, or gone: what lies there will tell
        missing = [number for number in range(1, len(ticket.part_sha256s) + 1) if number not in arrived]
        if not missing:
            self._bucket.finish_parts(ticket.quarantine, ticket.upload, arrived, ticket.part_sha256s, only_if_free=True)
        return missing

    def _is_moved(self, ticket: Ticket) -> bool:
        """Whether the key holds the file, having been copied there by this call or an earlier one."""
        arrived = self._held(ticket.quarantine, ticket)
        if arrived is None:
            return self._held(ticket.key, ticket) is not None
        self._bucket.copy(ticket.quarantine, ticket.key, etag=arrived.etag)
        copied = self._bucket.head(ticket.key)
        return copied is not None and copied.size == ticket.size

    def _held(self, key: str, ticket: Ticket) -> StoredObject | None:
        return self._bucket.holds(key, size=ticket.size, sha256=ticket.sha256, part_sha256s=ticket.part_sha256s)


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
