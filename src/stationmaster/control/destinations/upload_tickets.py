"""Upload tickets: each allows one upload of one file to the bucket, by signed URLs sent to the machine or by our API.

An upload goes to a quarantine key that nothing reads. Only verified content is copied to its final key, so a URL that
is used again, late, or with other bytes changes nothing, even if the service verifies nothing.
Every method blocks on the network: call it in a thread.
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

#: The chunk that trackside hashes at once; at most 10,000 parts, so files up to 625 GiB.
PART_BYTES = 64 << 20

_MOST_PARTS = 10_000
_QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadStatus:
    """The status of an upload: done, or the pieces that are still missing."""

    ticket: Ticket
    pieces: tuple[Piece, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.ticket.state is TicketState.DONE


class UploadTickets:
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
        """Open a ticket, with nothing signed yet; tickets and uploads of earlier tries are voided and removed."""
        for left in self._unfinished(job_id, attempt, path):
            self.discard(left, "an earlier try was interrupted")
        self.clean_quarantine()
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

    def resume(self, *, job_id: str, attempt: int, path: str, sha256: str) -> UploadStatus | None:
        """Resume an earlier try of the same upload; None if there is nothing to resume."""
        for left in self._unfinished(job_id, attempt, path):
            if left.state is TicketState.ISSUED and left.sha256 == sha256:
                try:
                    return self.settle(left.id)
                except TicketRefused:
                    continue
        return None

    def admit(self, ticket_id: str, token: str) -> Ticket:
        """The ticket, if the token is its own. Raises the same NotFound for a wrong token as for a missing ticket."""
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

    def issue(self, ticket_id: str) -> UploadStatus:
        """Sign the upload, only once: the row is updated first. Raises TicketRefused the second time."""
        ticket = self._tickets.get(ticket_id)
        if ticket.state is not TicketState.OPEN:
            raise TicketRefused("this upload ticket was already used")
        upload = self._bucket.begin_parts(ticket.quarantine) if self.goes_in_parts(ticket.size) else None
        try:
            issued = self._tickets.issue(ticket_id, seconds=self._seconds, upload=upload)
        except TicketRefused:
            if upload is not None:
                self._bucket.abandon_parts(ticket.quarantine, upload)
            raise
        return UploadStatus(ticket=issued, pieces=self._sign(issued, range(1, len(issued.part_sha256s) + 1)))

    def settle(self, ticket_id: str) -> UploadStatus:
        """Check the upload: if complete, it is moved to its key and the ticket is DONE; missing parts are signed again.

        Raises TicketRefused and voids the ticket if nothing or other content arrived. May be repeated.
        """
        ticket = self._tickets.get(ticket_id)
        if ticket.state is TicketState.DONE:
            return UploadStatus(ticket=ticket)
        if ticket.state is not TicketState.ISSUED:
            raise TicketRefused("this ticket is not open for uploads")
        if missing := self._join_or_list_missing(ticket):
            return UploadStatus(ticket=ticket, pieces=self._sign(ticket, missing))
        if not self._move_to_key(ticket):
            self.discard(ticket, "the uploaded content does not match the ticket")
            raise TicketRefused("the uploaded content does not match the ticket; it was deleted")
        self._tickets.close(ticket.id, TicketState.DONE)
        self._bucket.delete(ticket.quarantine)
        return UploadStatus(ticket=self._tickets.get(ticket_id))

    def discard(self, ticket: Ticket, why: str) -> None:
        """Void the ticket and delete what was uploaded with it."""
        self._tickets.close(ticket.id, TicketState.VOID, problem=why)
        if ticket.upload is not None:
            self._bucket.abandon_parts(ticket.quarantine, ticket.upload)
        self._bucket.delete(ticket.quarantine)

    def clean_quarantine(self) -> None:
        """Delete every quarantined object without a live ticket: a URL that is used late leaves one behind."""
        found = list(self._bucket.listed(f"{_QUARANTINE}/"))
        awaited = {
            ticket.quarantine for ticket in self._tickets.live()
        }  # read last: each was written before its upload
        for left in found:
            if left.key not in awaited:
                self._bucket.delete(left.key)

    def _unfinished(self, job_id: str, attempt: int, path: str) -> list[Ticket]:
        return [
            ticket
            for ticket in self._tickets.of_job(job_id)
            if (ticket.attempt, ticket.path) == (attempt, path) and ticket.state in LIVE_TICKET_STATES
        ]

    def _sign(self, ticket: Ticket, numbers: Iterable[int]) -> tuple[Piece, ...]:
        if ticket.upload is None:
            request = self._bucket.sign_put(
                ticket.quarantine, size=ticket.size, sha256=ticket.sha256, seconds=self._seconds
            )
            return (Piece(request=request, offset=0, size=ticket.size),)
        return tuple(self._sign_part(ticket, ticket.upload, number) for number in numbers)

    def _sign_part(self, ticket: Ticket, upload: str, number: int) -> Piece:
        offset = (number - 1) * self.part_bytes
        size = min(self.part_bytes, ticket.size - offset)
        sha256 = ticket.part_sha256s[number - 1]
        request = self._bucket.sign_part(
            ticket.quarantine, upload, number, size=size, sha256=sha256, seconds=self._seconds
        )
        return Piece(request=request, offset=offset, size=size)

    def _join_or_list_missing(self, ticket: Ticket) -> list[int]:
        """Join the parts into one object if all have arrived; else return the numbers of the missing ones."""
        if ticket.upload is None:
            return []
        arrived = self._bucket.list_parts(ticket.quarantine, ticket.upload)
        if arrived is None:
            return []  # joined by an earlier try, or gone: the caller checks the object
        missing = [number for number in range(1, len(ticket.part_sha256s) + 1) if number not in arrived]
        if not missing:
            self._bucket.finish_parts(ticket.quarantine, ticket.upload, arrived, ticket.part_sha256s, only_if_free=True)
        return missing

    def _move_to_key(self, ticket: Ticket) -> bool:
        """Copy the verified upload to its key; True if the key has the file, from this call or an earlier one."""
        arrived = self._find_verified(ticket.quarantine, ticket)
        if arrived is None:
            return self._find_verified(ticket.key, ticket) is not None
        self._bucket.copy(ticket.quarantine, ticket.key, etag=arrived.etag)
        copied = self._bucket.head(ticket.key)
        return copied is not None and copied.size == ticket.size

    def _find_verified(self, key: str, ticket: Ticket) -> StoredObject | None:
        return self._bucket.holds(key, size=ticket.size, sha256=ticket.sha256, part_sha256s=ticket.part_sha256s)


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
