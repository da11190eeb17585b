"""What a signed address is good for: these bytes, to this key, once, in time. The server enforces it."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from stationmaster.control.destinations.job_bucket import JobBucket
from stationmaster.control.destinations.upload_tickets import UploadStatus
from stationmaster.delivery.signed_requests import Piece
from stationmaster.errors import TicketRefused
from stationmaster.store.store import Store
from stationmaster.store.tickets import Ticket, TicketState
from tests.support.servers.s3_servers import S3Server

BODY = b"weights" * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()
KEY = "jobs/cats/attempt-1/output/model.safetensors"


def open_ticket(job_bucket: JobBucket, body: bytes = BODY, **changes: Any) -> Ticket:
    part = job_bucket.tickets.part_bytes
    parts = [hashlib.sha256(body[at : at + part]).hexdigest() for at in range(0, len(body), part)]
    values = {
        "job_id": "cats",
        "attempt": 1,
        "path": "output/model.safetensors",
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "key": KEY,
        "part_sha256s": parts if job_bucket.tickets.goes_in_parts(len(body)) else (),
    }
    return job_bucket.tickets.open(**{**values, **changes})


def send(piece: Piece, body: bytes, **headers: str) -> httpx.Response:
    content = body[piece.offset : piece.offset + piece.size]
    given = {name: value for name, value in piece.request.headers.items() if name != "Content-Length"}
    return httpx.put(piece.request.url, content=content, headers={**given, **headers}, timeout=150, verify=False)


def send_all(status: UploadStatus, body: bytes) -> list[int]:
    return [send(piece, body).status_code for piece in status.pieces]


def stored(job_bucket: JobBucket, key: str) -> bytes | None:
    return None if job_bucket.bucket.head(key) is None else b"".join(job_bucket.bucket.read(key))


def test_the_right_bytes_reach_their_key_and_leave_nothing_behind(open_job_bucket: Any, store: Store) -> None:
    job_bucket = open_job_bucket()
    ticket = open_ticket(job_bucket)
    assert send_all(job_bucket.tickets.issue(ticket.id), BODY) == [200]
    assert stored(job_bucket, KEY) is None  # not before home has looked at it
    assert job_bucket.tickets.settle(ticket.id).is_done
    assert stored(job_bucket, KEY) == BODY
    assert [one.key for one in job_bucket.bucket.listed()] == [KEY]
    assert job_bucket.tickets.settle(ticket.id).is_done  # asked again after a crash
    assert store.tickets.get(ticket.id).state is TicketState.DONE


def test_the_address_works_once(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket()
    ticket = open_ticket(job_bucket)
    status = job_bucket.tickets.issue(ticket.id)
    assert send_all(status, BODY) == [200]
    assert send_all(status, BODY) == [412]
    job_bucket.tickets.settle(ticket.id)
    send_all(status, BODY)  # the quarantine is empty again, so this arrives, where nobody looks
    assert stored(job_bucket, KEY) == BODY
    open_ticket(job_bucket, path="output/another", key="jobs/cats/another")  # whoever comes next clears it away
    assert [one.key for one in job_bucket.bucket.listed()] == [KEY]


def test_a_ticket_is_signed_once(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket()
    ticket = open_ticket(job_bucket)
    job_bucket.tickets.issue(ticket.id)
    with pytest.raises(TicketRefused):
        job_bucket.tickets.issue(ticket.id)


@pytest.mark.parametrize(
    "body", [b"WEIGHTS" * 1000, BODY[:-1], BODY + b"!", b""], ids=["other bytes", "shorter", "longer", "empty"]
)
def test_other_bytes_and_another_length_are_refused(open_job_bucket: Any, store: Store, body: bytes) -> None:
    job_bucket = open_job_bucket()
    ticket = open_ticket(job_bucket)
    (piece,) = job_bucket.tickets.issue(ticket.id).pieces
    given = {name: value for name, value in piece.request.headers.items() if name != "Content-Length"}
    assert httpx.put(piece.request.url, content=body, headers=given, verify=False).status_code in (400, 403)
    with pytest.raises(TicketRefused):
        job_bucket.tickets.settle(ticket.id)
    assert list(job_bucket.bucket.listed()) == []
    assert store.tickets.get(ticket.id).state is TicketState.VOID


@pytest.mark.parametrize("name", ["If-None-Match", "x-amz-checksum-sha256"])
def test_no_condition_can_be_left_out(open_job_bucket: Any, name: str) -> None:
    job_bucket = open_job_bucket()
    (piece,) = job_bucket.tickets.issue(open_ticket(job_bucket).id).pieces
    given = {key: value for key, value in piece.request.headers.items() if key not in (name, "Content-Length")}
    assert httpx.put(piece.request.url, content=BODY, headers=given, verify=False).status_code == 403
    assert list(job_bucket.bucket.listed()) == []


def test_another_type_is_refused(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket()
    (piece,) = job_bucket.tickets.issue(open_ticket(job_bucket).id).pieces
    assert send(piece, BODY, **{"Content-Type": "text/html"}).status_code == 403


def test_another_key_is_refused_and_what_lies_there_is_not_overwritten(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket()
    job_bucket.bucket.put(KEY, b"the model of yesterday", sha256=hashlib.sha256(b"the model of yesterday").hexdigest())
    ticket = open_ticket(job_bucket)
    (piece,) = job_bucket.tickets.issue(ticket.id).pieces
    elsewhere = piece.request.url.replace(
        job_bucket.bucket.full_key(ticket.quarantine), job_bucket.bucket.full_key(KEY)
    )
    assert elsewhere != piece.request.url
    answer = httpx.put(elsewhere, content=BODY, headers=dict(piece.request.headers), verify=False)
    assert answer.status_code == 403
    assert stored(job_bucket, KEY) == b"the model of yesterday"


def test_an_address_that_has_expired_is_refused(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket(seconds=1)
    ticket = open_ticket(job_bucket)
    status = job_bucket.tickets.issue(ticket.id)
    answer = httpx.put(status.pieces[0].request.url, content=b"", timeout=150, verify=False)
    while "expired" not in answer.text.lower():  # before: the signature does not fit an empty body
        answer = httpx.put(status.pieces[0].request.url, content=b"", timeout=150, verify=False)
    assert send_all(status, BODY) == [403]
    with pytest.raises(TicketRefused):
        job_bucket.tickets.settle(ticket.id)
    assert list(job_bucket.bucket.listed()) == []


def test_a_server_that_checks_nothing_still_cannot_bring_other_bytes_to_the_key(
    open_job_bucket: Any, rclone: S3Server, store: Store
) -> None:
    job_bucket = open_job_bucket(rclone)
    ticket = open_ticket(job_bucket)
    (piece,) = job_bucket.tickets.issue(ticket.id).pieces
    assert send(piece, BODY).status_code == 200
    assert send(piece, b"WEIGHTS" * 1000).status_code == 200  # it overwrites, and the checksum is not looked at
    with pytest.raises(TicketRefused):
        job_bucket.tickets.settle(ticket.id)
    assert stored(job_bucket, KEY) is None
    assert store.tickets.get(ticket.id).state is TicketState.VOID


def test_a_large_file_goes_in_parts_and_those_that_lack_are_signed_anew(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket(largest_put_bytes=6 << 20)
    body = bytes(range(256)) * 4096 * 11  # 11 MiB, three parts
    ticket = open_ticket(job_bucket, body)
    status = job_bucket.tickets.issue(ticket.id)
    assert [piece.size for piece in status.pieces] == [5 << 20, 5 << 20, 1 << 20]
    assert send(status.pieces[0], b"!" + body[1:]).status_code == 400
    assert send(status.pieces[1], body).status_code == 200
    rest = job_bucket.tickets.settle(ticket.id)
    assert [piece.offset for piece in rest.pieces] == [0, 10 << 20]
    assert send_all(rest, body) == [200, 200]
    assert job_bucket.tickets.settle(ticket.id).is_done
    assert stored(job_bucket, KEY) == body
    assert send(status.pieces[0], body).status_code == 404  # the upload is over
    assert [one.key for one in job_bucket.bucket.listed()] == [KEY]


def test_home_that_died_after_the_upload_finds_it(open_job_bucket: Any) -> None:
    job_bucket = open_job_bucket()
    assert send_all(job_bucket.tickets.issue(open_ticket(job_bucket).id), BODY) == [200]
    taken = job_bucket.tickets.resume(job_id="cats", attempt=1, path="output/model.safetensors", sha256=SHA256)
    assert taken is not None
    assert taken.is_done
    assert stored(job_bucket, KEY) == BODY


def test_home_that_died_between_the_move_and_the_note_of_it_finds_it(open_job_bucket: Any, store: Store) -> None:
    job_bucket = open_job_bucket()
    ticket = open_ticket(job_bucket)
    assert send_all(job_bucket.tickets.issue(ticket.id), BODY) == [200]
    found = job_bucket.bucket.head(ticket.quarantine)
    assert found is not None
    job_bucket.bucket.copy(ticket.quarantine, KEY, etag=found.etag)
    job_bucket.bucket.delete(ticket.quarantine)
    assert job_bucket.tickets.settle(ticket.id).is_done


def test_a_try_that_broke_off_leaves_the_way_free_for_the_next(open_job_bucket: Any, store: Store) -> None:
    job_bucket = open_job_bucket()
    first = open_ticket(job_bucket)
    job_bucket.tickets.issue(first.id)
    assert job_bucket.tickets.resume(job_id="cats", attempt=1, path="output/model.safetensors", sha256=SHA256) is None
    second = open_ticket(job_bucket)
    third = open_ticket(job_bucket)  # one that nothing was signed for is void as well
    assert len({first.id, second.id, third.id}) == 3
    assert send_all(job_bucket.tickets.issue(third.id), BODY) == [200]
    assert job_bucket.tickets.settle(third.id).is_done
    states = [ticket.state for ticket in store.tickets.of_job("cats")]
    assert states == [TicketState.VOID, TicketState.VOID, TicketState.DONE]
