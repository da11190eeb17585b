"""Clients that send too much, too slowly, too often, or hold connections for nothing; others are still answered."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from stationmaster.api.connections import ConnectionLimits
from stationmaster.api.gate.policy import GatePolicy
from tests.support.servers.gate_bench import GateBench, gate_bench
from tests.support.waiting import until

CHANGE = "/api/users/me/inbox/read"
JSON = {"Content-Type": "application/json"}
POLICY = GatePolicy(
    largest_body_bytes=10_000,
    largest_upload_bytes=50_000,
    silent_body_seconds=0.5,
    slow_body_seconds=1.0,
    least_bytes_per_second=1000.0,
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GateBench]:
    limits = ConnectionLimits(head_seconds=1.0, unread_seconds=1.0, most_connections=300)
    with gate_bench(tmp_path_factory.mktemp("home"), gate=POLICY, limits=limits) as bench:
        yield bench


def connect(bench: GateBench) -> socket.socket:
    host, _, port = bench.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=60)


def head(bench: GateBench, *lines: str, path: str = CHANGE) -> bytes:
    own = ("Host: localhost", f"Authorization: Bearer {bench.token}", "Content-Type: application/json")
    return "\r\n".join([f"POST {path} HTTP/1.1", *own, *lines, "", ""]).encode()


def answer_of(connection: socket.socket) -> bytes:
    """Everything until the server closes; a reset after the answer is no loss."""
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


def status_of(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d+)", answer)
    assert found, answer[:200]
    return int(found[1])


def test_two_hundred_clients_that_dribble_their_heads_keep_nobody_out(bench: GateBench) -> None:
    with ExitStack() as opened:
        slow = [opened.enter_context(connect(bench)) for _ in range(200)]
        for each in slow:
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        began = time.monotonic()
        assert httpx.get(f"{bench.url}/healthz", timeout=60, verify=False).status_code == 200
        answered_in = time.monotonic() - began

        def dribbled() -> bool:
            """Whether the server has closed them all, although each goes on sending."""
            for each in list(slow):
                try:
                    each.sendall(b"a")
                    each.setblocking(False)
                    if each.recv(1) == b"":
                        slow.remove(each)
                except BlockingIOError:
                    pass
                except OSError:
                    slow.remove(each)
                finally:
                    each.setblocking(True)
            return not slow

        until(dribbled, "the end of all slow connections", seconds=60)
    assert answered_in < 5, "one client waited for others"


def test_a_connection_without_a_byte_is_closed(bench: GateBench) -> None:
    with connect(bench) as silent:
        assert answer_of(silent) == b""


def test_a_second_head_on_the_same_connection_must_be_complete_in_time_too(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTT")
        assert answer_of(connection).count(b"HTTP/1.1 200") == 1


def test_connections_that_wait_make_room_for_others(bench: GateBench) -> None:
    with ExitStack() as opened:
        for _ in range(320):
            opened.enter_context(connect(bench))
        assert httpx.get(f"{bench.url}/healthz", timeout=60, verify=False).status_code == 200


def test_a_body_that_says_it_is_too_large_is_refused_before_it_arrives(bench: GateBench) -> None:
    with bench.client(bench.token, **JSON) as client:
        refused = client.post(CHANGE, content=b" " * 1_000_000)
        assert (refused.status_code, refused.json()["type"]) == (413, "urn:stationmaster:problem:TooLarge")
        assert refused.headers["connection"] == "close"
        assert refused.headers["x-frame-options"] == "DENY"
        assert client.post(CHANGE, content=b'{"up_to": 0}' + b" " * 9_000).status_code == 204
        fits_an_upload = client.put("/api/datasets/x/files/a.png", content=b" " * 20_000)
        assert fits_an_upload.status_code != 413
        assert client.put("/api/datasets/x/files/a.png", content=b" " * 60_000).status_code == 413


def test_a_huge_length_is_refused_without_waiting_for_it(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.sendall(head(bench, "Content-Length: 99999999999999999999", "Expect: 100-continue"))
        assert status_of(answer_of(connection)) == 413


def test_a_body_without_a_length_is_counted_while_it_arrives(bench: GateBench) -> None:
    with bench.client(bench.token, **JSON) as client:
        refused = client.post(CHANGE, content=iter([b" " * 1000] * 30))
        assert refused.status_code == 413
        assert client.post(CHANGE, content=iter([b'{"up_to"', b": 0}"])).status_code == 204


def test_an_endless_body_is_cut(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.sendall(head(bench, "Transfer-Encoding: chunked"))
        with pytest.raises(OSError):
            connection.sendall((b"400\r\n" + b" " * 1024 + b"\r\n") * 100_000)


def test_a_body_that_stops_arriving_is_given_up(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.sendall(head(bench, "Content-Length: 12") + b'{"up')
        answer = answer_of(connection)
    assert status_of(answer) == 408
    assert b"urn:stationmaster:problem:TooSlow" in answer


def test_a_body_that_arrives_byte_by_byte_is_given_up(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.sendall(head(bench, "Content-Length: 5000"))
        connection.setblocking(False)

        def closed() -> bytes | None:
            try:
                connection.send(b" ")
            except BlockingIOError:
                return None
            except OSError:
                pass
            try:
                return connection.recv(65536)
            except BlockingIOError:
                return None

        assert status_of(until(closed, "the answer to a slow body", seconds=60)) == 408


def test_a_refused_body_may_not_dribble_on_for_ever(bench: GateBench) -> None:
    """The route answers without reading the body; the rest of it must come soon."""
    with connect(bench) as connection:
        connection.sendall(b"POST /api/nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")

        def cut() -> bool:
            try:
                connection.sendall(b" ")
            except OSError:
                return True
            return False

        until(cut, "the end of the connection", seconds=60)


def test_nonsense_is_refused_as_a_problem(bench: GateBench) -> None:
    for sent in (
        b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"x" * 100_000,
    ):
        with connect(bench) as connection:
            try:
                connection.sendall(sent)
            except OSError:
                pass  # it was refused before it had arrived
            answer = answer_of(connection)
        assert status_of(answer) == 400
        assert b"application/problem+json" in answer.lower()


def test_an_answer_that_nobody_reads_is_dropped(bench: GateBench) -> None:
    with connect(bench) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        connection.settimeout(0.2)

        def cut() -> bool:
            try:
                connection.sendall(request * 20)
            except TimeoutError:
                return False
            except OSError:
                return True
            return False

        until(cut, "the end of the connection", seconds=60)


def test_requests_are_limited_per_caller_with_the_time_to_wait(tmp_path: Path) -> None:
    with (
        gate_bench(tmp_path, gate=GatePolicy(requests_per_minute=5)) as bench,
        bench.client(bench.token) as client,
        bench.client(bench.reading_token) as other,
        bench.client() as unknown,
    ):
        found = [client.get("/api/server") for _ in range(6)]
        assert [each.status_code for each in found] == [200] * 5 + [429]
        assert 1 <= int(found[-1].headers["retry-after"]) <= 12
        assert found[-1].json()["retry_after_seconds"] > 0
        assert other.get("/api/server").status_code == 200
        assert [unknown.get("/api/server").status_code for _ in range(6)] == [401] * 5 + [429]
        assert [client.get("/healthz").status_code for _ in range(9)] == [200] * 9
