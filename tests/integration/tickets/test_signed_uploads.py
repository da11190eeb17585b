"""What a signed address is good for: these bytes, to this key, once, in time. The server enforces it."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from stationmaster.control.destinations.job_bucket import BucketShelf
from stationmaster.control.destinations.tickets import Standing
from stationmaster.delivery.signed_requests import Piece
from stationmaster.errors import TicketRefused
from stationmaster.store.store import Store
from stationmaster.store.tickets import Ticket, TicketState
from tests.support.servers.s3_servers import S3Server

BODY = b"weights" * 1000
SHA256 = hashlib.sha256(BODY).hexdigest()
KEY = "jobs/cats/attempt-1/output/model.safetensors"


def open_ticket(shelf: BucketShelf, body: bytes = BODY, **changes: Any) -> Ticket:
    part = shelf.office.part_bytes
    parts = [hashlib.sha256(body[at : at + part]).hexdigest() for at in range(0, len(body), part)]
    values = {
        "job_id": "cats",
        "attempt": 1,
        "path": "output/model.safetensors",
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "key": KEY,
        "part_sha256s": parts if shelf.office.goes_in_parts(len(body)) else (),
    }
    return shelf.office.open(**{**values, **changes})


def send(piece: Piece, body: bytes, **headers: str) -> httpx.Response:
    content = body[piece.offset : piece.offset + piece.size]
    given = {name: value for name, value in piece.request.headers.items() if name != "Content-Length"}
    return httpx.put(piece.request.url, content=content, headers={**given, **headers}, timeout=150)


def send_all(standing: Standing, body: bytes) -> list[int]:
    return [send(piece, body).status_code for piece in standing.pieces]


def stored(shelf: BucketShelf, key: str) -> bytes | None:
    return None if shelf.bucket.head(key) is None else b"".join(shelf.bucket.read(key))


def test_the_right_bytes_reach_their_key_and_leave_nothing_behind(open_shelf: Any, store: Store) -> None:
    shelf = open_shelf()
    ticket = open_ticket(shelf)
    assert send_all(shelf.office.issue(ticket.id), BODY) == [200]
    assert stored(shelf, KEY) is None  # not before home has looked at it
    assert shelf.office.settle(ticket.id).is_done
    assert stored(shelf, KEY) == BODY
    assert [one.key for one in shelf.bucket.listed()] == [KEY]
    assert shelf.office.settle(ticket.id).is_done  # asked again after a crash
    assert store.tickets.get(ticket.id).state is TicketState.DONE


def test_the_address_works_once(open_shelf: Any) -> None:
    shelf = open_shelf()
    ticket = open_ticket(shelf)
    standing = shelf.office.issue(ticket.id)
    assert send_all(standing, BODY) == [200]
    assert send_all(standing, BODY) == [412]
    shelf.office.settle(ticket.id)
    send_all(standing, BODY)  # the quarantine is empty again, so this arrives, where nobody looks
    assert stored(shelf, KEY) == BODY
    open_ticket(shelf, path="output/another", key="jobs/cats/another")  # whoever comes next clears it away
    assert [one.key for one in shelf.bucket.listed()] == [KEY]


def test_a_ticket_is_signed_once(open_shelf: Any) -> None:
    shelf = open_shelf()
    ticket = open_ticket(shelf)
    shelf.office.issue(ticket.id)
    with pytest.raises(TicketRefused):
        shelf.office.issue(ticket.id)


@pytest.mark.parametrize(
    "body", [b"WEIGHTS" * 1000, BODY[:-1], BODY + b"!", b""], ids=["other bytes", "shorter", "longer", "empty"]
)
def test_other_bytes_and_another_length_are_refused(open_shelf: Any, store: Store, body: bytes) -> None:
    shelf = open_shelf()
    ticket = open_ticket(shelf)
    (piece,) = shelf.office.issue(ticket.id).pieces
    given = {name: value for name, value in piece.request.headers.items() if name != "Content-Length"}
    assert httpx.put(piece.request.url, content=body, headers=given).status_code in (400, 403)
    with pytest.raises(TicketRefused):
        shelf.office.settle(ticket.id)
    assert list(shelf.bucket.listed()) == []
    assert store.tickets.get(ticket.id).state is TicketState.VOID


@pytest.mark.parametrize("name", ["If-None-Match", "x-amz-checksum-sha256"])
def test_no_condition_can_be_left_out(open_shelf: Any, name: str) -> None:
    shelf = open_shelf()
    (piece,) = shelf.office.issue(open_ticket(shelf).id).pieces
    given = {key: value for key, value in piece.request.headers.items() if key not in (name, "Content-Length")}
    assert httpx.put(piece.request.url, content=BODY, headers=given).status_code == 403
    assert list(shelf.bucket.listed()) == []


def test_another_type_is_refused(open_shelf: Any) -> None:
    shelf = open_shelf()
    (piece,) = shelf.office.issue(open_ticket(shelf).id).pieces
    assert send(piece, BODY, **{"Content-Type": "text/html"}).status_code == 403


def test_another_key_is_refused_and_what_lies_there_is_not_overwritten(open_shelf: Any) -> None:
    shelf = open_shelf()
    shelf.bucket.put(KEY, b"the model of yesterday", sha256=hashlib.sha256(b"the model of yesterday").hexdigest())
    ticket = open_ticket(shelf)
    (piece,) = shelf.office.issue(ticket.id).pieces
    elsewhere = piece.request.url.replace(shelf.bucket.full_key(ticket.quarantine), shelf.bucket.full_key(KEY))
    assert elsewhere != piece.request.url
    answer = httpx.put(elsewhere, content=BODY, headers=dict(piece.request.headers))
    assert answer.status_code == 403
    assert stored(shelf, KEY) == b"the model of yesterday"


def test_an_address_that_has_expired_is_refused(open_shelf: Any) -> None:
    shelf = open_shelf(seconds=1)
    ticket = open_ticket(shelf)
    standing = shelf.office.issue(ticket.id)
    answer = httpx.put(standing.pieces[0].request.url, content=b"", timeout=150)
    while "expired" not in answer.text.lower():  # before: the signature does not fit an empty body
        answer = httpx.put(standing.pieces[0].request.url, content=b"", timeout=150)
    assert send_all(standing, BODY) == [403]
    with pytest.raises(TicketRefused):
        shelf.office.settle(ticket.id)
    assert list(shelf.bucket.listed()) == []


def test_a_server_that_checks_nothing_still_cannot_bring_other_bytes_to_the_key(
    open_shelf: Any, rclone: S3Server, store: Store
) -> None:
    shelf = open_shelf(rclone)
    ticket = open_ticket(shelf)
    (piece,) = shelf.office.issue(ticket.id).pieces
    assert send(piece, BODY).status_code == 200
    assert send(piece, b"WEIGHTS" * 1000).status_code == 200  # it overwrites, and the checksum is not looked at
    with pytest.raises(TicketRefused):
        shelf.office.settle(ticket.id)
    assert stored(shelf, KEY) is None
    assert store.tickets.get(ticket.id).state is TicketState.VOID


def test_a_large_file_goes_in_parts_and_those_that_lack_are_signed_anew(open_shelf: Any) -> None:
    shelf = open_shelf(largest_put_bytes=6 << 20)
    body = bytes(range(256)) * 4096 * 11  # 11 MiB, three parts
    ticket = open_ticket(shelf, body)
    standing = shelf.office.issue(ticket.id)
    assert [piece.size for piece in standing.pieces] == [5 << 20, 5 << 20, 1 << 20]
    assert send(standing.pieces[0], b"!" + body[1:]).status_code == 400
    assert send(standing.pieces[1], body).status_code == 200
    rest = shelf.office.settle(ticket.id)
    assert [piece.offset for piece in rest.pieces] == [0, 10 << 20]
    assert send_all(rest, body) == [200, 200]
    assert shelf.office.settle(ticket.id).is_done
    assert stored(shelf, KEY) == body
    assert send(standing.pieces[0], body).status_code == 404  # the upload is over
    assert [one.key for one in shelf.bucket.listed()] == [KEY]


def test_home_that_died_after_the_upload_finds_it(open_shelf: Any) -> None:
    shelf = open_shelf()
    assert send_all(shelf.office.issue(open_ticket(shelf).id), BODY) == [200]
    taken = shelf.office.take_up(job_id="cats", attempt=1, path="output/model.safetensors", sha256=SHA256)
    assert taken is not None
    assert taken.is_done
    assert stored(shelf, KEY) == BODY


def test_home_that_died_between_the_move_and_the_note_of_it_finds_it(open_shelf: Any, store: Store) -> None:
    shelf = open_shelf()
    ticket = open_ticket(shelf)
    assert send_all(shelf.office.issue(ticket.id), BODY) == [200]
    found = shelf.bucket.head(ticket.quarantine)
    assert found is not None
    shelf.bucket.copy(ticket.quarantine, KEY, etag=found.etag)
    shelf.bucket.delete(ticket.quarantine)
    assert shelf.office.settle(ticket.id).is_done


def test_a_try_that_broke_off_leaves_the_way_free_for_the_next(open_shelf: Any, store: Store) -> None:
    shelf = open_shelf()
    first = open_ticket(shelf)
    shelf.office.issue(first.id)
    assert shelf.office.take_up(job_id="cats", attempt=1, path="output/model.safetensors", sha256=SHA256) is None
    second = open_ticket(shelf)
    third = open_ticket(shelf)  # one that nothing was signed for is void as well
    assert len({first.id, second.id, third.id}) == 3
    assert send_all(shelf.office.issue(third.id), BODY) == [200]
    assert shelf.office.settle(third.id).is_done
    states = [ticket.state for ticket in store.tickets.of_job("cats")]
    assert states == [TicketState.VOID, TicketState.VOID, TicketState.DONE]
